"""Decoding speed over the latest seconds, against the minute before, and over the whole soak."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

LATEST_S: Final = 10.0
BEFORE_S: Final = 60.0
MIN_BEFORE_S: Final = 10.0  # of decoding, else there is no trend
CELLS: Final = 32
_NS: Final = 1e9


@dataclass(slots=True)
class _Cell:
    tokens: int = 0
    busy_ns: int = 0


@dataclass(slots=True)
class Speed:
    """Memory does not grow with the soak: two cells become one when there are too many."""

    _recent: deque[tuple[int, int, int]] = field(default_factory=deque)  # end, tokens, busy
    _cells: list[_Cell] = field(default_factory=lambda: [_Cell()])
    _cell_ns: int = 10**9

    def on_tokens(self, start_ns: list[int], end_ns: list[int]) -> None:
        """Take the tokens of one record; a phone may send any numbers."""
        count = min(len(start_ns), len(end_ns))
        pairs = zip(start_ns[:count], end_ns[:count], strict=True)
        busy_ns = sum(max(0, end - start) for start, end in pairs)
        if not count or busy_ns <= 0:
            return
        at_ns = end_ns[count - 1]
        self._recent.append((at_ns, count, busy_ns))
        while self._recent and self._recent[0][0] < at_ns - (LATEST_S + BEFORE_S) * _NS:
            self._recent.popleft()
        if at_ns < 0 or at_ns > 2**62:
            return
        while at_ns // self._cell_ns >= 2 * CELLS:
            self._halve()
        index = at_ns // self._cell_ns
        while len(self._cells) <= index:
            self._cells.append(_Cell())
        self._cells[index].tokens += count
        self._cells[index].busy_ns += busy_ns

    def tokens_per_s(self) -> float | None:
        """Return the speed of the latest seconds in which tokens came."""
        latest, _ = self._parts()
        return _rate(latest)

    def trend(self) -> float | None:
        """Return the change against the minute before as a share, None before there is one."""
        latest, before = self._parts()
        now, then = _rate(latest), _rate(before)
        if now is None or not then or before.busy_ns < MIN_BEFORE_S * _NS:
            return None
        return now / then - 1.0

    def cells(self) -> list[float]:
        """Return up to `2 * CELLS` speeds over the soak, evenly spaced; gaps repeat the last."""
        busiest_ns = max(cell.busy_ns for cell in self._cells)
        speeds: list[float] = []
        for cell in self._cells:
            # A few tokens say nothing of a speed: the newest cell has just begun.
            rate = _rate(cell) if cell.busy_ns * 4 > busiest_ns else None
            if rate is not None:
                speeds.append(rate)
            elif speeds:
                speeds.append(speeds[-1])
        return speeds

    def _parts(self) -> tuple[_Cell, _Cell]:
        latest, before = _Cell(), _Cell()
        newest_ns = self._recent[-1][0] if self._recent else 0
        for at_ns, tokens, busy_ns in self._recent:
            cell = latest if at_ns > newest_ns - LATEST_S * _NS else before
            cell.tokens += tokens
            cell.busy_ns += busy_ns
        return latest, before

    def _halve(self) -> None:
        cells = self._cells
        pairs = zip(cells[::2], [*cells[1::2], _Cell()], strict=False)
        self._cells = [_Cell(a.tokens + b.tokens, a.busy_ns + b.busy_ns) for a, b in pairs]
        self._cell_ns *= 2


def _rate(cell: _Cell) -> float | None:
    return cell.tokens * _NS / cell.busy_ns if cell.busy_ns > 0 else None
