"""Puts the bytes of a connection back in order. Pure: no clock, no I/O."""

from __future__ import annotations

from typing import Final

from orchestrator.virtual.tunnel.packet import add, distance, is_before

_MAX_AHEAD_BYTES: Final = 2 << 20
_MAX_SACK_BLOCKS: Final = 3


class Reassembly:
    """Bytes received so far, and what came ahead of a hole.

    Holes are ordinary: PyTCP, the host's stack of pymobiledevice3, drops packets before they reach
    the tunnel when its socket pair is full.
    """

    def __init__(self, next_seq: int) -> None:
        self.next_seq = next_seq
        self._ahead: dict[int, bytes] = {}
        self._ahead_bytes = 0
        self._latest: int | None = None

    def accept(self, seq: int, data: bytes) -> list[bytes]:
        """Take a segment's data and return what is now in order."""
        if is_before(self.next_seq, seq):
            self._keep(seq, data)
            return []
        chunks = self._take(seq, data)
        while (seq_ahead := self._first_ahead()) is not None:
            if is_before(self.next_seq, seq_ahead):
                break
            kept = self._ahead.pop(seq_ahead)
            self._ahead_bytes -= len(kept)
            chunks += self._take(seq_ahead, kept)
        return chunks

    @property
    def has_hole(self) -> bool:
        """Whether later data is waiting for earlier data."""
        return bool(self._ahead)

    def sack_blocks(self) -> tuple[tuple[int, int], ...]:
        """Return the ranges held beyond the hole, the one that changed last first (RFC 2018)."""
        blocks: list[tuple[int, int]] = []
        for seq in sorted(self._ahead, key=lambda seq: distance(self.next_seq, seq)):
            end = add(seq, len(self._ahead[seq]))
            if blocks and blocks[-1][1] == seq:
                blocks[-1] = (blocks[-1][0], end)
            else:
                blocks.append((seq, end))
        blocks.sort(key=lambda block: not self._holds_latest(block))
        return tuple(blocks[:_MAX_SACK_BLOCKS])

    def _holds_latest(self, block: tuple[int, int]) -> bool:
        if self._latest is None:
            return False
        return distance(block[0], self._latest) < distance(*block)

    def _keep(self, seq: int, data: bytes) -> None:
        if self._ahead_bytes + len(data) > _MAX_AHEAD_BYTES:
            return  # the peer sends it again
        self._ahead_bytes += len(data) - len(self._ahead.get(seq, b""))
        self._ahead[seq] = data
        self._latest = seq

    def _first_ahead(self) -> int | None:
        # Overlapping retransmissions may leave entries that lie wholly in the past: those first.
        past = [seq for seq in self._ahead if not is_before(self.next_seq, seq)]
        if past:
            return past[0]
        return min(self._ahead, key=lambda seq: distance(self.next_seq, seq), default=None)

    def _take(self, seq: int, data: bytes) -> list[bytes]:
        known = distance(seq, self.next_seq)
        if known >= len(data):
            return []
        self.next_seq = add(seq, len(data))
        return [data[known:]]
