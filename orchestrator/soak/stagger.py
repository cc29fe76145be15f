"""Lets phones begin one after the other what they would all begin at once."""

from __future__ import annotations

import time
from dataclasses import dataclass

import anyio


@dataclass(slots=True)
class Stagger:
    """Gives each caller a start, none sooner than `gap_s` after the one before it."""

    gap_s: float = 0.0
    _next_s: float = 0.0  # monotonic

    async def turn(self) -> None:
        """Wait for this caller's start."""
        now_s = time.monotonic()
        start_s = max(now_s, self._next_s)
        self._next_s = start_s + self.gap_s
        await anyio.sleep(start_s - now_s)
