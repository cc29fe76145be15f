"""The host's client of the control protocol (docs/protocol.md, 2).

Whatever comes from the phone is hostile: lines are bounded, replies are matched, and what is not a
reply is handed on as raw bytes for the run directory to judge.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Never, Protocol

import anyio
import msgspec

from orchestrator.domain.errors import DeadlineExceededError, DeviceError
from orchestrator.domain.outcome import Cause

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from orchestrator.domain.deadline import Deadline

MOST_LINE_BYTES: Final = 64 * 1024
_PIECE_BYTES: Final = 64 * 1024
_MOST_WAITING_BYTES: Final = 32 * 1024**2  # of records read while a reply is awaited
_MOST_UNTAKEN_BYTES: Final = 48 * 1024**2  # an app that answers with nothing but records is none
_CONSUMER_WAIT_S: Final = 0.01
_MOST_TEXT: Final = 200  # characters of the phone's text in a message
_LAYER: Final = "app"


class ByteStream(Protocol):
    """A connection to the app, as anyio's byte streams are."""

    async def receive(self, max_bytes: int = ..., /) -> bytes:
        """Return the next bytes, at least one; raise `anyio.EndOfStream` at the end."""

    async def send(self, item: bytes, /) -> None:
        """Send all the bytes."""

    async def aclose(self) -> None:
        """Close the connection."""


class ConnectionLostError(DeviceError):
    """The connection to the app ended or broke."""


class ProtocolViolationError(DeviceError):
    """The app sent what no app may send; the connection is of no more use."""

    def __init__(self, alias: str, phase: str, facts: str) -> None:
        super().__init__(alias, _LAYER, phase, facts, cause=Cause.TELEMETRY_LOST)


class CommandRefusedError(DeviceError):
    """The app answered a command with a refusal.

    Attributes:
        error: The protocol's word for it: `token`, `started`, `scenario`, `launch`, `command`.
    """

    def __init__(self, alias: str, command: str, error: str, message: str) -> None:
        self.error = error
        facts = f"the app refused: {error[:_MOST_TEXT]!r}"
        if message:
            facts += f", {message[:_MOST_TEXT]!r}"
        super().__init__(alias, _LAYER, command, facts, cause=Cause.NOT_READY)


@dataclass(frozen=True, slots=True)
class AppHello:
    """What the app says of itself."""

    protocol: int
    app: str
    pid: int
    launch: str  # uuid
    started: bool
    seq: int  # of the last record


@dataclass(frozen=True, slots=True)
class AppStatus:
    """Where the soak is."""

    started: bool
    seq: int
    tokens_total: int
    phase: str


class _Reply(msgspec.Struct, kw_only=True):
    """A reply; fields that a command does not have keep their defaults."""

    reply: str
    id: int | None
    ok: bool
    kind: str | None = None
    error: str = ""
    message: str = ""
    protocol: int = 0
    app: str = ""
    pid: int = 0
    launch: str = ""
    started: bool = False
    seq: int = 0
    tokens_total: int = 0
    phase: str = ""


_decoder: Final = msgspec.json.Decoder(_Reply)


def _as_reply(line: bytes) -> _Reply | None:
    """Return the reply that a line is, or None for a record and for anything else."""
    try:
        reply = _decoder.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    return reply if reply.kind is None else None


class AppClient:
    """One connection to the app.

    One task may iterate `records` while another sends commands: whoever waits first reads for both.
    The first broken rule ends the connection, and every later call raises the same error.
    """

    def __init__(self, stream: ByteStream, *, alias: str) -> None:
        """Take a connection.

        Args:
            stream: Closed by `aclose`, or when the app breaks the protocol.
            alias: The phone, for messages.
        """
        self._stream, self._alias = stream, alias
        self._reading = anyio.Lock()
        self._sending = anyio.Lock()
        self._rest = bytearray()  # of a line that is not complete
        self._records: deque[bytes] = deque()
        self._waiting_bytes = 0  # of `_records`
        self._replies: dict[int, _Reply | None] = {}  # of the commands that wait
        self._last_id = 0
        self._ended = False
        self._broken: DeviceError | None = None

    @property
    def torn_bytes(self) -> int:
        """Bytes of an unfinished line; at the end of a connection the record that was cut."""
        return len(self._rest)

    async def hello(self, token: str, deadline: Deadline) -> AppHello:
        """Authenticate; has to come first.

        Raises:
            CommandRefusedError: With `token`, if the token is wrong.
            DeviceError: See `status`.
        """
        reply = await self._ask("hello", deadline, {"token": token})
        return AppHello(
            reply.protocol, reply.app, reply.pid, reply.launch, reply.started, reply.seq
        )

    async def start(
        self,
        deadline: Deadline,
        *,
        run_id: str,
        nonce: int,
        scenario: Mapping[str, object],
        packages: Sequence[Mapping[str, str]],
    ) -> None:
        """Start the soak; records follow.

        Args:
            deadline: For the reply.
            run_id: The run.
            nonce: 64 bit, known to nobody before.
            scenario: docs/protocol.md, 2.2.
            packages: docs/protocol.md, 2.1.

        Raises:
            CommandRefusedError: With `started` or `scenario`.
            DeviceError: See `status`.
        """
        fields = {
            "run_id": run_id,
            "nonce": f"{nonce:016x}",
            "scenario": dict(scenario),
            "packages": [dict(package) for package in packages],
        }
        await self._ask("start", deadline, fields)

    async def resume(self, launch: str, seq: int, deadline: Deadline) -> None:
        """Have the records after `seq` sent on this connection.

        Raises:
            CommandRefusedError: With `launch`, if the app was launched anew.
            DeviceError: See `status`.
        """
        await self._ask("resume", deadline, {"launch": launch, "seq": seq})

    async def stop(self, deadline: Deadline) -> None:
        """End the soak; `bye` and the end of the connection follow.

        Raises:
            DeviceError: See `status`.
        """
        await self._ask("stop", deadline, {})

    async def status(self, deadline: Deadline) -> AppStatus:
        """Return where the soak is.

        Raises:
            CommandRefusedError: If the app does not answer this command.
            DeadlineExceededError: If there is no reply in time.
            ConnectionLostError: If the connection ended or broke.
            ProtocolViolationError: If the app broke the protocol.
        """
        reply = await self._ask("status", deadline, {})
        return AppStatus(reply.started, reply.seq, reply.tokens_total, reply.phase)

    async def records(self) -> AsyncIterator[bytes]:
        """Yield the journal's lines as they come, newline included, until the app closes.

        Raises:
            ConnectionLostError: If the connection broke.
            ProtocolViolationError: If the app broke the protocol.
        """
        while await self._read_until(lambda: bool(self._records), "records"):
            line = self._records.popleft()
            self._waiting_bytes -= len(line)
            yield line

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

    async def _ask(self, command: str, deadline: Deadline, fields: Mapping[str, object]) -> _Reply:
        self._last_id += 1
        number = self._last_id
        self._replies[number] = None
        try:
            with anyio.fail_after(deadline.remaining_s()):
                await self._send({"id": number, "command": command, **fields}, command)
                answered = await self._read_until(
                    lambda: self._replies[number] is not None, command, bounded=True
                )
        except TimeoutError as error:
            raise DeadlineExceededError(self._alias, _LAYER, command, deadline.limit_s) from error
        finally:
            reply = self._replies.pop(number)
        if not answered or reply is None:
            raise ConnectionLostError(self._alias, _LAYER, command, "the app closed the connection")
        return self._accepted(reply, command)

    def _accepted(self, reply: _Reply, command: str) -> _Reply:
        if not reply.ok:
            raise CommandRefusedError(self._alias, command, reply.error, reply.message)
        if reply.reply != command:
            raise ProtocolViolationError(
                self._alias, command, f"it answered {reply.reply[:_MOST_TEXT]!r}"
            )
        return reply

    async def _send(self, message: Mapping[str, object], phase: str) -> None:
        if self._broken is not None:
            raise self._broken
        async with self._sending:
            try:
                await self._stream.send(msgspec.json.encode(message) + b"\n")
            except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                raise self._lost(phase) from error

    async def _read_until(
        self, done: Callable[[], bool], phase: str, *, bounded: bool = False
    ) -> bool:
        """Read until `done`, and return whether it is: False at the end of the connection.

        Args:
            done: Looked at after every read, by this task or another.
            phase: For messages.
            bounded: Wait for the consumer of records while many are waiting.
        """
        while not done():
            if bounded and self._waiting_bytes > _MOST_WAITING_BYTES:
                await anyio.sleep(_CONSUMER_WAIT_S)
                continue
            async with self._reading:
                if done():
                    return True
                if self._broken is not None:
                    raise self._broken
                if self._ended:
                    return False
                await self._read(phase)
            if self._waiting_bytes > _MOST_UNTAKEN_BYTES:
                await self._break(phase, f"over {_MOST_UNTAKEN_BYTES} bytes that nobody asked for")
        return True

    async def _read(self, phase: str) -> None:
        try:
            piece = await self._stream.receive(_PIECE_BYTES)
        except anyio.EndOfStream:
            piece = b""
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise self._lost(phase) from error
        if not piece:
            self._ended = True
            return
        searched = len(self._rest)
        self._rest += piece
        await self._take_lines(searched, phase)

    async def _take_lines(self, searched: int, phase: str) -> None:
        """Take the complete lines; the first `searched` bytes are known to hold no newline."""
        start = 0
        while (end := self._rest.find(b"\n", max(start, searched))) >= 0:
            line = bytes(self._rest[start : end + 1])
            if len(line) > MOST_LINE_BYTES:
                break
            self._route(line)
            start = end + 1
        del self._rest[:start]
        if len(self._rest) >= MOST_LINE_BYTES:
            await self._break(phase, f"a line of over {MOST_LINE_BYTES} bytes")

    def _route(self, line: bytes) -> None:
        """Give a line to who waits for it; a reply that nobody waits for is dropped."""
        reply = _as_reply(line)
        if reply is None:
            self._records.append(line)
            self._waiting_bytes += len(line)
        elif reply.id in self._replies:
            self._replies[reply.id] = reply

    def _lost(self, phase: str) -> DeviceError:
        self._broken = self._broken or ConnectionLostError(
            self._alias, _LAYER, phase, "the connection to the app broke"
        )
        return self._broken

    async def _break(self, phase: str, facts: str) -> Never:
        self._broken = ProtocolViolationError(self._alias, phase, facts)
        await self._stream.aclose()
        raise self._broken
