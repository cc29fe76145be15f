"""The orchestrator's side of a keeper: a `DeveloperSession` over the keeper's socket.

It has no task of its own: whoever waits for a reply or an event reads the socket, one message at a
time, and hands it to whom it concerns. A client that nobody waits on leaves its events with the
keeper, which buffers them.
"""

from __future__ import annotations

import itertools
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from orchestrator.device.events import SessionLost
from orchestrator.device.keeper.buffer import EventBuffer
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
    decode_from_keeper,
    encode,
)
from orchestrator.device.keeper.place import is_held
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeadlineExceededError, DeviceError
from orchestrator.domain.outcome import Cause

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from anyio.abc import ByteStream

    from orchestrator.device.events import SessionEvent
    from orchestrator.device.keeper.place import KeeperPlace

CLOSE_LIMIT_S: Final = 15.0
# The keeper keeps the deadline; if it is silent for this much longer, the keeper itself hangs.
KEEPER_GRACE_S: Final = 3.0
_GONE: Final = (
    anyio.EndOfStream,
    anyio.IncompleteRead,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.DelimiterNotFound,
    msgspec.DecodeError,
    OSError,
)


class KeeperClient:
    """A developer session kept by another process. Make it with `attach`."""

    def __init__(self, alias: str, place: KeeperPlace, stream: ByteStream) -> None:
        self.place = place
        self.keeper_pid: int | None = None
        self.app_pid: int | None = None  # of an app that ran already when we attached
        self.by_tunneld = False  # whether a tunneld leads to the phone's services
        self._alias = alias
        self._stream = stream
        self._lines = BufferedByteReceiveStream(stream)
        self._reading = anyio.Lock()
        self._sending = anyio.Lock()
        self._ids = itertools.count(1)
        self._replies: dict[int, Result | Failed] = {}
        self._abandoned: set[int] = set()
        self._events = EventBuffer()
        self._detached = False
        self._hangs = False  # it missed a deadline that it was to keep itself
        self._lost: DeviceError | None = None

    @classmethod
    async def attach(cls, alias: str, place: KeeperPlace, *, deadline: Deadline) -> KeeperClient:
        """Attach to a keeper that lives, and open its session if it is not open.

        Raises:
            DeviceError: If none lives there, it has a client already, or the phone refuses.
        """
        try:
            with anyio.fail_after(deadline.remaining_s()):
                client = cls(alias, place, await anyio.connect_unix(place.socket))
                await client._greeted_or_closed()
        except _GONE as error:  # TimeoutError is an OSError
            raise _host_error(alias, "attach", f"no keeper answers: {error}") from error
        try:
            client.by_tunneld = bool(await client._call(Open, "open", deadline))
        except DeviceError:
            await client.aclose()
            raise
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await client.detach()  # a keeper that has launched nothing ends with its client
            raise
        return client

    async def launch(
        self,
        bundle_id: str,
        environment: Mapping[str, str],
        arguments: Sequence[str] = (),
        *,
        deadline: Deadline,
    ) -> int:
        """Start the app and return its pid."""
        variables, words = dict(environment), list(arguments)
        return await self._number(
            lambda number, limit_s: Launch(number, limit_s, bundle_id, variables, words),
            "launch",
            deadline,
        )

    async def kill(self, pid: int, *, deadline: Deadline) -> None:
        """Send SIGKILL; a pid that is gone already is no error."""
        await self._call(lambda number, limit_s: Kill(number, limit_s, pid), "kill", deadline)

    async def is_running(self, pid: int, *, deadline: Deadline) -> bool:
        """Ask the phone whether the pid is alive."""
        answer = await self._number(
            lambda number, limit_s: IsRunning(number, limit_s, pid), "is-running", deadline
        )
        return bool(answer)

    async def physical_memory_bytes(self, *, deadline: Deadline) -> int:
        """Return sysmontap's `physMemSize`, in bytes."""
        return await self._number(PhysicalMemory, "memory", deadline)

    async def boot_session(self, *, deadline: Deadline) -> str | None:
        """Return the UUID of the phone's boot, None where it does not say."""
        answer = await self._call(BootSession, "boot-session", deadline)
        return answer if isinstance(answer, str) else None

    async def observe(self, pid: int, interval_ms: int, *, deadline: Deadline) -> None:
        """Start footprint events for one pid."""
        await self._call(
            lambda number, limit_s: Observe(number, limit_s, pid, interval_ms), "observe", deadline
        )

    async def events(self) -> AsyncIterator[SessionEvent]:
        """Iterate the session's events; ends after `SessionLost`."""
        while True:
            await self._until(lambda: len(self._events) > 0 or self._lost is not None)
            event = self._events.pop() or SessionLost(self._lost.facts if self._lost else "")
            yield event
            if isinstance(event, SessionLost):
                return

    async def detach(self) -> None:
        """Leave app and keeper running within the lease."""
        self._detached = True
        await self._stream.aclose()

    async def aclose(self) -> None:
        """Kill the app if it still runs, and end the keeper. Never raises.

        A keeper that hangs is killed at once: the phone then ends what it launched, and the next
        keeper finds the lock free.
        """
        if self._detached:
            return
        with anyio.CancelScope(shield=True):
            deadline = Deadline.after(0.0 if self._hangs else CLOSE_LIMIT_S)
            if not self._hangs:
                with suppress(DeviceError):
                    await self._call(Close, "close", deadline)
            await self._stream.aclose()
            await self._keeper_gone(deadline)

    async def _keeper_gone(self, deadline: Deadline) -> None:
        """Wait until the keeper's lock is free; past the deadline, kill the keeper."""
        while is_held(self.place):
            if deadline.passed:
                await self._kill()
                return
            await anyio.sleep(0.01)

    async def _kill(self) -> None:
        if self.keeper_pid is None:
            return
        with suppress(ProcessLookupError):
            os.kill(self.keeper_pid, signal.SIGKILL)  # it holds its lock, so the pid is its own
        # The lock goes with the last thread; a new keeper would be refused until then.
        with anyio.move_on_after(KEEPER_GRACE_S):
            while is_held(self.place):  # noqa: ASYNC110 - the kernel says nothing
                await anyio.sleep(0.01)

    async def _greeted_or_closed(self) -> None:
        """Take the greeting; a keeper that ends instead leaves no open socket here."""
        try:
            await self._greeted()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._stream.aclose()
            raise

    async def _greeted(self) -> None:
        greeting = await self._receive()
        if isinstance(greeting, Refused):
            raise _host_error(self._alias, "attach", greeting.reason)
        if isinstance(greeting, Attached):
            self.keeper_pid, self.app_pid = greeting.keeper_pid, greeting.app_pid

    async def _number(
        self, request: Callable[[int, float], Request], phase: str, deadline: Deadline
    ) -> int:
        value = await self._call(request, phase, deadline)
        if not isinstance(value, int):
            raise _host_error(self._alias, phase, "the keeper answered without a number")
        return value

    async def _call(
        self, request: Callable[[int, float], Request], phase: str, deadline: Deadline
    ) -> int | str | None:
        if self._lost is not None:
            raise self._lost
        number = next(self._ids)
        limit_s = deadline.remaining_s()
        try:
            with anyio.fail_after(limit_s + KEEPER_GRACE_S):
                await self._send(request(number, limit_s))
                await self._until(lambda: number in self._replies or self._lost is not None)
        except TimeoutError as error:
            self._hangs = True
            raise DeadlineExceededError(
                self._alias, "host", phase, deadline.limit_s, remedy="The keeper process hangs"
            ) from error
        finally:
            reply = self._replies.pop(number, None)
            if reply is None:
                self._abandoned.add(number)
        return self._value(reply)

    def _value(self, reply: Result | Failed | None) -> int | str | None:
        if isinstance(reply, Failed):
            raise reply.error(self._alias)
        if reply is None:
            raise self._lost or _host_error(self._alias, "call", "no reply")
        return reply.value

    async def _send(self, request: Request) -> None:
        try:
            async with self._sending:
                await self._stream.send(encode(request))
        except _GONE:
            self._lose()

    async def _until(self, ready: Callable[[], bool]) -> None:
        # The lock goes round after every message, so each waiter sees what came for it.
        while not ready():
            async with self._reading:
                if not ready():
                    await self._read_one()

    async def _read_one(self) -> None:
        try:
            message = await self._receive()
        except _GONE:
            self._lose()
            return
        if isinstance(message, Result | Failed):
            if message.id in self._abandoned:
                self._abandoned.discard(message.id)
            else:
                self._replies[message.id] = message
        elif not isinstance(message, Attached | Refused):
            self._events.add(message)

    async def _receive(self) -> FromKeeper:
        return decode_from_keeper(await self._lines.receive_until(b"\n", MAX_LINE_BYTES))

    def _lose(self) -> None:
        self._lost = self._lost or _host_error(self._alias, "session", "the keeper process is gone")


def _host_error(alias: str, phase: str, facts: str) -> DeviceError:
    return DeviceError(alias, "host", phase, facts, cause=Cause.DEVICE_LOST)
