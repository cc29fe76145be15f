"""Apps that have left the screen and will be suspended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Suspensions:
    """Timers by pid. Call it in the event loop."""

    def __init__(self) -> None:
        self._timers: dict[int, asyncio.TimerHandle] = {}

    def plan(self, pid: int, after_s: float, suspend: Callable[[], None]) -> None:
        """Suspend a process after a time, unless it is forgotten before."""
        self.forget(pid)

        def due() -> None:
            self._timers.pop(pid, None)
            suspend()

        self._timers[pid] = asyncio.get_running_loop().call_later(after_s, due)

    def forget(self, pid: int) -> None:
        """Do not suspend a process after all."""
        timer = self._timers.pop(pid, None)
        if timer is not None:
            timer.cancel()

    def forget_all(self) -> None:
        """Suspend nothing any more."""
        for pid in tuple(self._timers):
            self.forget(pid)
