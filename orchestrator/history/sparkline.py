"""A row of numbers as one line of blocks, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_MISSING: Final = "·"


def sparkline(values: Sequence[float | None]) -> str:
    """Return one character per value, lowest to highest; equal values stand in the middle."""
    present = [value for value in values if value is not None]
    if not present:
        return _MISSING * len(values)
    low, high = min(present), max(present)
    return "".join(_MISSING if value is None else _block(value, low, high) for value in values)


def _block(value: float, low: float, high: float) -> str:
    if high <= low:
        return _BLOCKS[len(_BLOCKS) // 2]
    return _BLOCKS[round((value - low) / (high - low) * (len(_BLOCKS) - 1))]
