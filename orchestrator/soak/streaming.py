"""One launch of the app: its stream to disk, its exits, and when it is over.

Records are appended to `stream.ndjson` byte for byte as they arrive. A broken connection is made
again and continues after the last `seq`; what was lost is filled from the journal later.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import anyio
import msgspec

from orchestrator.device.events import (
    AppExited,
    AppOutput,
    EventsDropped,
    FootprintObserved,
    SessionLost,
    WarningNoticed,
)
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError
from orchestrator.harness.control import AppClient, CommandRefusedError
from orchestrator.runlog.documents import AppExit
from orchestrator.soak.watch import HANG_LIMIT_S, Action, Ending, StreamWatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from orchestrator.device.events import SessionEvent
    from orchestrator.device.link import DeveloperSession, PhoneLink
    from orchestrator.runlog.files import LineWriter

CONNECT_LIMIT_S: Final = 20.0
REPLY_LIMIT_S: Final = 10.0
STOP_REPLY_LIMIT_S: Final = 2.0
TICK_S: Final = 0.25
RETRY_S: Final = 0.2


class Peek(msgspec.Struct, frozen=True, gc=False):
    """What the session needs to know of a record."""

    seq: int
    kind: str
    event: str | None = None  # of a lifecycle


@dataclass(frozen=True, slots=True)
class Recorded:
    """A record was written to disk."""

    kind: str
    event: str | None = None


@dataclass(frozen=True, slots=True)
class Connected:
    """The app answers."""


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection to the app ended."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The app refused to start or to resume."""


@dataclass(frozen=True, slots=True)
class StopRequested:
    """Somebody wants the end of the run."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed."""


Happening = (
    Recorded | Connected | Disconnected | Refused | StopRequested | Tick | AppExited | SessionLost
)


@dataclass(frozen=True, slots=True)
class StartCommand:
    """What the app is told to do."""

    run_id: str
    nonce: str
    scenario: dict[str, object]
    packages: list[dict[str, str]]


@dataclass(slots=True)
class StreamResult:
    """What one launch left behind, besides its files."""

    launch: str | None = None
    ending: Ending | None = None
    stopped_by_host: bool = False
    killed_by_host: bool = False
    exits: list[AppExit] = field(default_factory=list)
    peak_observed_bytes: int | None = None
    warnings_noticed: int = 0  # that the developer services told of
    error: str | None = None


@dataclass(slots=True)
class AppStream:
    """Follows one launch until it is over.

    The task that runs it owns the connection; the developer session belongs to the caller.
    """

    link: PhoneLink
    session: DeveloperSession
    pid: int
    port: int
    token: str
    start: StartCommand
    stream: LineWriter
    console: LineWriter
    stop: anyio.Event
    run_limit_s: float
    hang_limit_s: float = HANG_LIMIT_S
    result: StreamResult = field(default_factory=StreamResult)  # filled on the way
    last_seq: int = 0  # of what `stream` holds already
    remember: Callable[[], None] = lambda: None  # called before what another process must know
    _client: AppClient | None = None
    _greeted: anyio.Event = field(default_factory=anyio.Event)  # set while there is a client

    async def follow(self) -> StreamResult:
        """Stream until the app is done, gone, or stopped, and return what happened."""
        watch = StreamWatch(time.monotonic(), self.run_limit_s, self.hang_limit_s)
        inbox_send, inbox = anyio.create_memory_object_stream[Happening](64)
        async with anyio.create_task_group() as tasks, inbox_send, inbox:
            tasks.start_soon(self._read_app, inbox_send)
            tasks.start_soon(self._read_session, inbox_send)
            tasks.start_soon(self._wait_for_stop, inbox_send)
            tasks.start_soon(self._tick, inbox_send)
            await self._decide(watch, inbox)
            tasks.cancel_scope.cancel()
        self.result.ending = watch.ending
        self.result.stopped_by_host = watch.stop_requested
        return self.result

    async def _decide(
        self, watch: StreamWatch, inbox: MemoryObjectReceiveStream[Happening]
    ) -> None:
        async for happening in inbox:
            action = _tell(watch, happening, time.monotonic())
            if action is Action.ASK_STOP:
                await self._ask_stop()
            elif action is Action.KILL:
                await self._kill()
            elif action is Action.COLLECT:
                return

    async def _ask_stop(self) -> None:
        with anyio.move_on_after(STOP_REPLY_LIMIT_S):
            await self._greeted.wait()
        client = self._client
        if client is None:
            await self._kill()
            return
        try:
            await client.stop(Deadline.after(STOP_REPLY_LIMIT_S))
        except DeviceError as error:
            self.result.error = str(error)
            await self._kill()

    async def _kill(self) -> None:
        self.result.killed_by_host = True
        self.remember()  # a death by our hand is never to be taken for the app's own
        try:
            await self.session.kill(self.pid, deadline=Deadline.after(REPLY_LIMIT_S))
        except DeviceError as error:
            self.result.error = str(error)

    async def _wait_for_stop(self, inbox: MemoryObjectSendStream[Happening]) -> None:
        await self.stop.wait()
        await inbox.send(StopRequested())

    async def _tick(self, inbox: MemoryObjectSendStream[Happening]) -> None:
        while True:
            await anyio.sleep(TICK_S)
            await inbox.send(Tick())

    async def _read_session(self, inbox: MemoryObjectSendStream[Happening]) -> None:
        async for event in self.session.events():
            noted = self._note(event)
            if noted is not None:
                await inbox.send(noted)

    def _note(self, event: SessionEvent) -> Happening | None:
        match event:
            case AppOutput(_, line):
                self.console.append(line.encode("utf-8", "replace"))
            case EventsDropped(footprints, lines):
                self.console.append(f"[{lines} lines and {footprints} readings dropped]".encode())
            case FootprintObserved(pid, footprint_bytes) if pid == self.pid:
                peak = self.result.peak_observed_bytes or 0
                self.result.peak_observed_bytes = max(peak, footprint_bytes)
            case WarningNoticed(pid) if pid in (None, self.pid):
                self.result.warnings_noticed += 1
            case AppExited(pid, exit_code, signal) if pid == self.pid:
                self._note_exit(
                    AppExit(pid=pid, at_s=time.time(), exit_code=exit_code, signal=signal)
                )
                return event
            case SessionLost(reason):
                self.result.error = reason
                return event
            case _:
                pass
        return None

    def _note_exit(self, gone: AppExit) -> None:
        if all(known.pid != gone.pid for known in self.result.exits):  # a keeper repeats exits
            self.result.exits.append(gone)

    async def _read_app(self, inbox: MemoryObjectSendStream[Happening]) -> None:
        while True:
            try:
                await self._read_connection(inbox)
            except CommandRefusedError as error:
                self.result.error = str(error)
                await inbox.send(Refused())
                return
            except DeviceError as error:
                self.result.error = str(error)
            self._client = None
            self._greeted = anyio.Event()
            await inbox.send(Disconnected())
            await anyio.sleep(RETRY_S)

    async def _read_connection(self, inbox: MemoryObjectSendStream[Happening]) -> None:
        connection = await self.link.connect(self.port, deadline=Deadline.after(CONNECT_LIMIT_S))
        client = AppClient(connection, alias=self.link.phone.alias)
        try:
            # Before the greeting: an app that dies on `start` is still heard to its end.
            await inbox.send(Connected())
            await self._greet(client)
            self._client = client
            self._greeted.set()
            self.result.error = None
            async for line in client.records():
                self.stream.append(line)
                await inbox.send(self._peek(line))
        finally:
            with anyio.CancelScope(shield=True):
                await client.aclose()

    async def _greet(self, client: AppClient) -> None:
        deadline = Deadline.after(REPLY_LIMIT_S)
        hello = await client.hello(self.token, deadline)
        if self.result.launch is None:
            self.result.launch = hello.launch
            self.remember()
        if hello.started:
            await client.resume(hello.launch, self.last_seq, deadline)
            return
        await client.start(
            deadline,
            run_id=self.start.run_id,
            nonce=int(self.start.nonce, 16),
            scenario=self.start.scenario,
            packages=self.start.packages,
        )

    def _peek(self, line: bytes) -> Recorded:
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            peek = msgspec.json.decode(line, type=Peek)
            self.last_seq = max(self.last_seq, peek.seq)
            return Recorded(peek.kind, peek.event)
        return Recorded("undecodable")


def _tell(watch: StreamWatch, happening: Happening, now_s: float) -> Action:
    action = Action.CONTINUE
    match happening:
        case Recorded(kind, event):
            action = watch.on_record(kind, now_s, event)
        case Connected():
            action = watch.on_connected(now_s)
        case Disconnected():
            action = watch.on_disconnected(now_s)
        case Refused():
            action = watch.on_refused(now_s)
        case StopRequested():
            action = watch.on_stop_request(now_s)
        case Tick():
            action = watch.on_tick(now_s)
        case AppExited():
            action = watch.on_exit(now_s)
        case SessionLost():
            action = watch.on_session_lost()
    return action
