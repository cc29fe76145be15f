"""One TCP connection at the phone's end of a tunnel."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Protocol

from orchestrator.virtual.tunnel.inbound import Reassembly
from orchestrator.virtual.tunnel.outbound import SendBuffer
from orchestrator.virtual.tunnel.packet import DEFAULT_MSS, Flags, Options, Segment, add
from orchestrator.virtual.wire import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

# PyTCP, the host's stack, loses what exceeds its socket pair's queue of 10 and waits seconds before
# it repeats it: 3 MB take 3 to 8 s with windows of 128 KiB and more, 0.5 s with this one.
RECEIVE_WINDOW_BYTES: Final = 64 << 10
RECEIVE_BUFFER_BYTES: Final = 1 << 20  # what a service may leave unread before the window closes
WINDOW_SHIFT: Final = 5
MIN_MSS: Final = 536
HIGH_WATER_BYTES: Final = 1 << 20
LOW_WATER_BYTES: Final = 512 << 10
FIRST_TIMEOUT_S: Final = 0.2
MAX_TIMEOUT_S: Final = 5.0
MAX_SILENT_TIMEOUTS: Final = 12  # about 45 s without a word from the peer
DUPLICATES_FOR_RESEND: Final = 3


class _State(Enum):
    SYN_RECEIVED = auto()
    ESTABLISHED = auto()
    CLOSED = auto()


class Link(Protocol):
    """What a connection needs from its stack."""

    @property
    def max_mss(self) -> int:
        """Largest segment that fits the tunnel."""

    def send(self, connection: TcpConnection, segment: Segment) -> None:
        """Send one segment to the connection's peer."""

    def established(self, connection: TcpConnection) -> None:
        """Called once, when the handshake is over."""

    def closed(self, connection: TcpConnection) -> None:
        """Called once, when nothing more will come or go."""


@dataclass(frozen=True, slots=True)
class Handshake:
    """What both ends agreed on when the connection opened."""

    own_port: int
    peer_port: int
    own_seq: int  # of our SYN
    peer_seq: int  # of the peer's SYN
    peer_window: int
    peer_options: Options


class _ReadGate(asyncio.ReadTransport):
    """Lets the `StreamReader` say that it has enough."""

    def __init__(self, on_resume: Callable[[], None]) -> None:
        super().__init__()
        self.paused = False
        self._on_resume = on_resume

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False
        self._on_resume()


class TcpConnection:
    """Retransmits, reorders, and paces; hands a `Stream` to the service.

    No congestion control: the link is a local TLS stream.
    """

    def __init__(self, link: Link, handshake: Handshake, *, is_open: bool = False) -> None:
        self.handshake = handshake
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._state = _State.ESTABLISHED if is_open else _State.SYN_RECEIVED
        options = handshake.peer_options
        self._mss = max(MIN_MSS, min(options.mss or DEFAULT_MSS, link.max_mss))
        self._peer_shift = options.window_shift or 0
        self._peer_window = handshake.peer_window
        self._out = SendBuffer(add(handshake.own_seq, 1))
        self._in = Reassembly(add(handshake.peer_seq, 1))
        self._input_ended = False
        self._duplicates = 0
        self._timeout_s, self._silent_timeouts = FIRST_TIMEOUT_S, 0
        self._timer: asyncio.TimerHandle | None = None
        self._ack_planned = self._ack_due = False
        self._offered_window = RECEIVE_WINDOW_BYTES
        self._gate = _ReadGate(self._reopen_window)
        # A StreamReader pauses at twice its limit.
        self._reader = asyncio.StreamReader(limit=RECEIVE_BUFFER_BYTES // 2)
        self._reader.set_transport(self._gate)
        self.writer = TcpWriter(self)
        self.stream = Stream(self._reader, self.writer)

    @property
    def is_closed(self) -> bool:
        """Whether the connection is over."""
        return self._state is _State.CLOSED

    @property
    def unsent_bytes(self) -> int:
        """Bytes queued or not yet acknowledged."""
        return len(self._out)

    def answer_syn(self) -> None:
        """Send SYN and ACK; again whenever the peer repeats its SYN or is silent."""
        peer = self.handshake.peer_options
        options = Options(
            mss=self._link.max_mss,
            window_shift=None if peer.window_shift is None else WINDOW_SHIFT,
            sack_permitted=peer.sack_permitted,
        )
        self._send(Flags.SYN | Flags.ACK, seq=self.handshake.own_seq, options=options)
        self._arm()

    def write(self, data: bytes) -> None:
        """Queue bytes and send what the window allows."""
        if not self.is_closed:
            self._out.write(data)
            self._flush()

    def end(self) -> None:
        """Send what is queued, then FIN."""
        if not self.is_closed:
            self._out.end()
            self._flush()

    def abort(self) -> None:
        """Reset the connection."""
        if not self.is_closed:
            self._send(Flags.RST | Flags.ACK)
            self.lose(ConnectionResetError("the connection was aborted"))

    def lose(self, error: ConnectionError | None) -> None:
        """End the connection without telling the peer; readers get the error, or end of file."""
        if self.is_closed:
            return
        self._state = _State.CLOSED
        self._disarm()
        if error is not None and not self._input_ended:
            self._reader.set_exception(error)
        self._end_input()
        self._out.clear()
        self.writer.wake()
        self._link.closed(self)

    def receive(self, segment: Segment) -> None:
        """Take one segment from the peer."""
        if segment.flags & Flags.RST:
            self.lose(ConnectionResetError("the peer reset the connection"))
        elif segment.flags & Flags.SYN:
            if self._state is _State.SYN_RECEIVED:
                self.answer_syn()
        elif segment.flags & Flags.ACK and self._accept_ack(segment):
            self._accept_data(segment)
            self._accept_fin(segment)
            if not self.is_closed:
                self._flush()
                self._plan_ack()

    def _accept_ack(self, segment: Segment) -> bool:
        """Take the acknowledgement and the window; False if the segment is not ours."""
        self._silent_timeouts = 0
        self._peer_window = segment.window << self._peer_shift
        if self._state is _State.SYN_RECEIVED:
            if segment.ack != self._out.next_seq:
                return False
            self._state = _State.ESTABLISHED
            self._disarm()
            self._link.established(self)
        elif self._out.acknowledge(segment.ack):
            self._duplicates = 0
            self._timeout_s = FIRST_TIMEOUT_S
            self._disarm()
            self.writer.wake()
        elif self._is_duplicate(segment):
            self._duplicates += 1
            if self._duplicates == DUPLICATES_FOR_RESEND:
                oldest = self._out.oldest(self._mss)
                self._send(Flags.ACK, seq=self._out.acknowledged, data=oldest)
        return True

    def _is_duplicate(self, segment: Segment) -> bool:
        return (
            segment.ack == self._out.acknowledged
            and self._out.in_flight > 0
            and not segment.data
            and not segment.flags & Flags.FIN
        )

    def _accept_data(self, segment: Segment) -> None:
        if not segment.data:
            return
        self._ack_due = True
        for chunk in self._in.accept(segment.seq, segment.data):
            if not self._input_ended:
                self._reader.feed_data(chunk)
        if self._in.has_hole:
            self._send_ack()  # at once: it tells the peer which bytes are missing

    def _accept_fin(self, segment: Segment) -> None:
        at = add(segment.seq, len(segment.data))
        if segment.flags & Flags.FIN and at == self._in.next_seq:
            self._in.next_seq = add(self._in.next_seq, 1)
            self._end_input()
            self._ack_due = True
        if self._input_ended and self._out.fin_acknowledged:
            if self._ack_due:
                self._send_ack()
            self.lose(None)

    def _end_input(self) -> None:
        if not self._input_ended:
            self._input_ended = True
            self._reader.feed_eof()

    def _window(self) -> int:
        # By the reader's pause, not by free space: a service that waits for 4 MB needs the buffer
        # to grow past any limit, and PyTCP slows to a segment a second after a zero window.
        return 0 if self._gate.paused else RECEIVE_WINDOW_BYTES

    def _reopen_window(self) -> None:
        if not self.is_closed and self._offered_window == 0:
            self._send_ack()

    def _plan_ack(self) -> None:
        """Acknowledge two passes of the event loop later, once for all that came meanwhile.

        By then the reader that this data woke has run, so the window says what it still wants.
        """
        if self._ack_due and not self._ack_planned:
            self._ack_planned = True
            self._loop.call_soon(self._loop.call_soon, self._send_planned_ack)

    def _send_planned_ack(self) -> None:
        self._ack_planned = False
        if self._ack_due and not self.is_closed:
            self._send_ack()

    def _send_ack(self) -> None:
        sack = self._in.sack_blocks() if self.handshake.peer_options.sack_permitted else ()
        self._send(Flags.ACK, options=Options(sack=sack))

    def _flush(self) -> None:
        if self._state is not _State.ESTABLISHED:
            return
        while chunk := self._out.take(self._mss, self._peer_window):
            flags = Flags.ACK | (Flags.FIN if chunk.fin else Flags.NONE)
            flags |= Flags.PSH if chunk.data and chunk.is_last else Flags.NONE
            self._send(flags, seq=chunk.seq, data=chunk.data)
        if self._out.in_flight or len(self._out):
            self._arm()

    def _send(
        self,
        flags: Flags,
        *,
        seq: int | None = None,
        data: bytes = b"",
        options: Options | None = None,
    ) -> None:
        window = self._offered_window = self._window()
        # The window of a SYN is never scaled; later ones are if both ends said so.
        if not flags & Flags.SYN and self.handshake.peer_options.window_shift is not None:
            window >>= WINDOW_SHIFT
        self._ack_due = False
        segment = Segment(
            source_port=self.handshake.own_port,
            target_port=self.handshake.peer_port,
            seq=self._out.next_seq if seq is None else seq,
            ack=self._in.next_seq,
            flags=flags,
            window=min(window, 0xFFFF),
            data=data,
            options=options or Options(),
        )
        self._link.send(self, segment)

    def _arm(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout_s, self._on_timeout)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timeout(self) -> None:
        self._timer = None
        self._timeout_s = min(self._timeout_s * 2, MAX_TIMEOUT_S)
        self._silent_timeouts += 1
        if self._silent_timeouts > MAX_SILENT_TIMEOUTS:
            self.lose(ConnectionResetError("the peer does not answer"))
        elif self._state is _State.SYN_RECEIVED:
            self.answer_syn()
        elif self._out.in_flight:
            self._out.rewind()
            self._flush()
        elif len(self._out):
            # The window is closed: an old sequence number makes the peer say how it is now.
            self._send(Flags.ACK, seq=add(self._out.acknowledged, -1))
            self._arm()


class TcpWriter:
    """`ByteWriter` over a connection."""

    def __init__(self, connection: TcpConnection) -> None:
        self._connection = connection
        self._room = asyncio.Event()

    def write(self, data: bytes) -> None:
        """Queue bytes."""
        self._connection.write(data)

    async def drain(self) -> None:
        """Wait until little is queued.

        Raises:
            ConnectionResetError: If the connection is over.
        """
        while self._connection.unsent_bytes > HIGH_WATER_BYTES:
            self._room.clear()
            await self._room.wait()
        if self._connection.is_closed:
            raise ConnectionResetError("the connection is closed")

    def wake(self) -> None:
        """Let a waiting `drain` look again."""
        if self._connection.unsent_bytes < LOW_WATER_BYTES:
            self._room.set()

    def close(self) -> None:
        """Send what is queued, then end."""
        self._connection.end()

    def abort(self) -> None:
        """Reset the connection."""
        self._connection.abort()
