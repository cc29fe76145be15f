"""The keeper's side of the socket: one client at a time, events buffered, a lease without one."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, assert_never

import anyio
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from orchestrator.device.events import AppExited, SessionLost
from orchestrator.device.keeper.buffer import EventBuffer
from orchestrator.device.keeper.lease import Lease, LeasePhase
from orchestrator.device.keeper.messages import (
    MAX_LINE_BYTES,
    Attached,
    BootSession,
    Close,
    Failed,
    FromKeeper,
    IsRunning,
    Kill,
    Launch,
    Observe,
    Open,
    PhysicalMemory,
    Refused,
    Request,
    Result,
    decode_request,
    encode,
)
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from anyio.abc import ByteStream, Listener, TaskGroup

    from orchestrator.device.events import SessionEvent

_GONE: Final = (
    anyio.EndOfStream,
    anyio.IncompleteRead,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.DelimiterNotFound,
    msgspec.DecodeError,
)
HANDOVER_LIMIT_S: Final = 0.5
CLOSE_LIMIT_S: Final = 10.0  # for killing the app and closing the tunnel at the end


class KeptSession(Protocol):
    """The session in the keeper's own process; raises `DeviceError` only."""

    async def open(self, *, deadline: Deadline) -> bool:
        """Open tunnel and developer services; return whether a tunneld leads to them."""
        ...

    async def launch(
        self,
        bundle_id: str,
        environment: Mapping[str, str],
        arguments: Sequence[str],
        *,
        deadline: Deadline,
    ) -> int:
        """Start the app and return its pid."""
        ...

    async def kill(self, pid: int, *, deadline: Deadline) -> None:
        """Send SIGKILL."""
        ...

    async def is_running(self, pid: int, *, deadline: Deadline) -> bool:
        """Ask whether the pid is alive."""
        ...

    async def physical_memory_bytes(self, *, deadline: Deadline) -> int:
        """Return `physMemSize`."""
        ...

    def boot_session(self) -> str | None:
        """Return the UUID of the phone's boot, None where it does not say."""
        ...

    async def observe(self, pid: int, interval_ms: int, *, deadline: Deadline) -> None:
        """Start footprint events."""
        ...

    async def aclose(self, *, deadline: Deadline) -> None:
        """Close tunnel and services."""
        ...


class KeeperServer:
    """Owns one session from the first client to the end of the lease.

    Args:
        alias: The phone, for errors.
        pid: Of the keeper, told to clients.
        session: What it keeps.
        lease_s: Life without a client.
        on_app: Called with bundle and pid whenever the app has been started or is gone.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        alias: str,
        pid: int,
        session: KeptSession,
        lease_s: float,
        *,
        on_app: Callable[[str | None, int | None], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._alias = alias
        self._pid = pid
        self._session = session
        self._on_app = on_app
        self._clock = clock
        self._lease = Lease.starting(lease_s, clock())
        self._lease_changed = anyio.Event()
        self._buffer = EventBuffer()
        self._news = anyio.Event()
        self._exits: list[AppExited] = []
        self._app_pid: int | None = None
        self._opened = False
        self._by_tunneld = False
        self._broken: DeviceError | None = None
        self._open_lock = anyio.Lock()

    def report(self, event: SessionEvent) -> None:
        """Take an event from the session; called from its callbacks, never blocks."""
        if isinstance(event, AppExited):
            self._exits.append(event)
            if event.pid == self._app_pid:
                self._app_pid = None
                self._on_app(None, None)
        elif isinstance(event, SessionLost):
            self._broken = self._broken or DeviceError(
                self._alias, "dvt", "session", event.reason, remedy="Check the cable"
            )
            self._change(self._lease.bereft(self._clock()))
        self._buffer.add(event)
        self._news.set()

    async def serve(self, listener: Listener[ByteStream]) -> None:
        """Serve until the session is closed or the lease is over; then kill the app.

        The listener is closed at the end.
        """
        try:
            async with listener, anyio.create_task_group() as tasks:
                tasks.start_soon(self._accept, listener, tasks)
                await self._lease_over()
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._end()

    def end(self) -> None:
        """End the session now; the parent is gone."""
        self._change(self._lease.closed())

    async def _lease_over(self) -> None:
        while self._lease.at(self._clock()).phase is not LeasePhase.ENDED:
            with anyio.move_on_after(self._lease.wait_s(self._clock())):
                await self._lease_changed.wait()

    def _change(self, lease: Lease) -> None:
        self._lease = lease
        self._lease_changed.set()
        self._lease_changed = anyio.Event()

    async def _accept(self, listener: Listener[ByteStream], tasks: TaskGroup) -> None:
        async def handle(stream: ByteStream) -> None:
            async with stream:
                await self._client(stream, tasks)

        await listener.serve(handle, tasks)

    async def _client(self, stream: ByteStream, tasks: TaskGroup) -> None:
        client = _Client(stream)
        await self._handed_over()
        if self._lease.phase in (LeasePhase.HELD, LeasePhase.ENDED):
            await client.send(Refused(f"the keeper's session is {self._lease.phase}"))
            return
        self._change(self._lease.attached())

        def start(request: Request) -> None:
            tasks.start_soon(self._answer, client, request)

        try:
            delivered_before = [gone for gone in self._exits if gone not in self._buffer]
            await client.send(Attached(self._pid, self._app_pid), *delivered_before)
            async with anyio.create_task_group() as sending:
                sending.start_soon(self._send_events, client)
                # Requests belong to the keeper: a launch whose client has gone is still finished,
                # so that the app it makes is known and ends with the lease.
                await client.requests(start)
                sending.cancel_scope.cancel()
        finally:
            self._client_gone()

    async def _handed_over(self) -> None:
        """Give a former client's end of file the time to arrive."""
        with anyio.move_on_after(HANDOVER_LIMIT_S):
            while self._lease.phase is LeasePhase.HELD:
                await self._lease_changed.wait()

    def _client_gone(self) -> None:
        if self._lease.phase is not LeasePhase.HELD:
            return
        if self._app_pid is None and not self._exits:
            self.end()  # nothing was launched: there is nothing to adopt
        else:
            lease = self._lease.detached(self._clock())
            self._change(lease.bereft(self._clock()) if self._broken is not None else lease)

    async def _send_events(self, client: _Client) -> None:
        while True:
            while not len(self._buffer):
                self._news = anyio.Event()
                await self._news.wait()
            events = self._buffer.take()
            delivered = False
            try:
                delivered = await client.send(*events)
            finally:
                if not delivered:
                    self._buffer.restore(events)
            if not delivered:
                return

    async def _answer(self, client: _Client, request: Request) -> None:
        try:
            if self._broken is not None and not isinstance(request, Close):
                raise self._broken
            value = await self._perform(request, Deadline.after(request.limit_s))
        except DeviceError as error:
            await client.send(Failed.of(request.id, error))
            return
        await client.send(Result(request.id, value))
        if isinstance(request, Close):
            self.end()

    async def _perform(self, request: Request, deadline: Deadline) -> int | str | None:
        match request:
            case Open():
                return int(await self._open(deadline))
            case Launch():
                return await self._launch(request, deadline)
            case Kill():
                await self._session.kill(request.pid, deadline=deadline)
            case IsRunning():
                return int(await self._session.is_running(request.pid, deadline=deadline))
            case PhysicalMemory():
                return await self._session.physical_memory_bytes(deadline=deadline)
            case BootSession():
                return self._session.boot_session()
            case Observe():
                await self._session.observe(request.pid, request.interval_ms, deadline=deadline)
            case Close():
                await self._close(deadline)
            case _:
                assert_never(request)
        return None

    async def _open(self, deadline: Deadline) -> bool:
        async with self._open_lock:
            if self._opened:
                return self._by_tunneld
            try:
                self._by_tunneld = await self._session.open(deadline=deadline)
            except DeviceError as error:
                self._broken = error
                raise
            self._opened = True
            return self._by_tunneld

    async def _launch(self, request: Launch, deadline: Deadline) -> int:
        pid = await self._session.launch(
            request.bundle_id, request.environment, request.arguments, deadline=deadline
        )
        # The exit of an app that dies at once may be here before the launch has answered.
        if all(gone.pid != pid for gone in self._exits):
            self._app_pid = pid
            self._on_app(request.bundle_id, pid)
        return pid

    async def _close(self, deadline: Deadline) -> None:
        if self._app_pid is not None and self._broken is None:
            await self._session.kill(self._app_pid, deadline=deadline)
            self._app_pid = None

    async def _end(self) -> None:
        deadline = Deadline.after(CLOSE_LIMIT_S)
        with suppress(DeviceError):  # the phone may be out of reach, and the app with it
            await self._close(deadline)
        await self._session.aclose(deadline=deadline)


class _Client:
    """One connection; several tasks send on it."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._lock = anyio.Lock()

    async def send(self, *messages: FromKeeper) -> bool:
        """Write lines; False when the client is gone."""
        data = b"".join(encode(message) for message in messages)
        try:
            async with self._lock:
                await self._stream.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
        return True

    async def requests(self, take: Callable[[Request], object]) -> None:
        """Hand over requests until the client is gone or sends what is none."""
        lines = BufferedByteReceiveStream(self._stream)
        try:
            while True:
                take(decode_request(await lines.receive_until(b"\n", MAX_LINE_BYTES)))
        except _GONE:
            return
