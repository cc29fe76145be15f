"""What a connection still has to send or to see acknowledged. Pure: no clock, no I/O."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.virtual.tunnel.packet import add, distance


@dataclass(frozen=True, slots=True)
class Chunk:
    """The next piece to send."""

    seq: int
    data: bytes
    is_last: bool  # nothing more is queued after it
    fin: bool = False


class SendBuffer:
    """Bytes from the oldest unacknowledged one on, and the FIN after them."""

    def __init__(self, first_seq: int) -> None:
        self.acknowledged = self.next_seq = first_seq
        self._bytes = bytearray()
        self._fin_queued = self._fin_sent = False

    def __len__(self) -> int:
        return len(self._bytes)

    @property
    def in_flight(self) -> int:
        """How many sequence numbers are sent and not acknowledged."""
        return distance(self.acknowledged, self.next_seq)

    @property
    def ended(self) -> bool:
        """Whether the owner will write nothing more."""
        return self._fin_queued

    @property
    def fin_acknowledged(self) -> bool:
        """Whether the peer has everything, the end included."""
        return self._fin_sent and not self._bytes and self.in_flight == 0

    def write(self, data: bytes) -> None:
        """Queue bytes; after `end` they are thrown away."""
        if not self._fin_queued:
            self._bytes += data

    def end(self) -> None:
        """Queue the FIN."""
        self._fin_queued = True

    def take(self, mss: int, window: int) -> Chunk | None:
        """Return the next piece that the peer's window allows, and count it as sent."""
        if self._fin_sent:
            return None
        sent = self.in_flight
        length = min(mss, len(self._bytes) - sent, window - sent)
        if length > 0:
            chunk = Chunk(
                self.next_seq,
                bytes(self._bytes[sent : sent + length]),
                is_last=sent + length == len(self._bytes),
            )
            self.next_seq = add(self.next_seq, length)
            return chunk
        if self._fin_queued and sent == len(self._bytes):
            self._fin_sent = True
            chunk = Chunk(self.next_seq, b"", is_last=True, fin=True)
            self.next_seq = add(self.next_seq, 1)
            return chunk
        return None

    def acknowledge(self, ack: int) -> bool:
        """Take an acknowledgement; whether it is news."""
        count = distance(self.acknowledged, ack)
        if not 0 < count <= len(self._bytes) + self._fin_queued:
            return False
        if count > self.in_flight:
            # After a rewind the peer may have what is about to be sent again.
            self.next_seq = ack
            self._fin_sent = self._fin_sent or count > len(self._bytes)
        del self._bytes[:count]
        self.acknowledged = ack
        return True

    def rewind(self) -> None:
        """Go back to the oldest unacknowledged byte, to send everything again."""
        self.next_seq = self.acknowledged
        self._fin_sent = False

    def oldest(self, mss: int) -> bytes:
        """Return the piece that a duplicate acknowledgement asks for."""
        return bytes(self._bytes[:mss])

    def clear(self) -> None:
        """Forget everything; the connection is over."""
        self._bytes.clear()
        self._fin_queued = True
