"""When to warn an app of low memory, when to kill it, when to look again.

Pure: it takes readings and the time, and returns what to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

# An iPhone 8 was seen to warn at 1289 MB and to kill at 1400 MB: at 92 % of the limit.
WARN_RATIO: Final = 0.92
REARM_RATIO: Final = 0.85
WARNING_PERIOD_S: Final = 1.0

# The fastest that a process was measured to dirty 4 kB pages, in host bytes. Looking again after
# headroom / growth finds it close behind the limit at little cost while the limit is far.
FASTEST_GROWTH_BYTES_PER_S: Final = 2e9
SHORTEST_DELAY_S: Final = 0.001
LONGEST_DELAY_S: Final = 0.050


class Action(Enum):
    """What a reading demands."""

    NONE = "none"
    WARN = "warn"
    KILL = "kill"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now, and when to read again."""

    action: Action
    delay_s: float


class PressureGauge:
    """Follows one process from its first reading to the kill.

    The first reading at or over `WARN_RATIO` of the limit warns, and so does one every
    `WARNING_PERIOD_S` while it stays there. Below `REARM_RATIO` the gauge is armed anew: the next
    crossing warns at once. In between, a footprint that trembles around the threshold is not
    warned more often than one that stays over it. A reading at the limit kills, once.
    """

    def __init__(self, limit_bytes: int) -> None:
        """Start armed.

        Args:
            limit_bytes: The limit in host bytes.

        Raises:
            ValueError: If the limit is not positive.
        """
        if limit_bytes <= 0:
            raise ValueError(f"limit_bytes must be positive, not {limit_bytes}")
        self._limit_bytes = limit_bytes
        self._is_armed = True
        self._is_killed = False
        self._warned_s = 0.0

    def observe(self, footprint_bytes: int, now_s: float) -> Decision:
        """Return what a reading demands.

        Args:
            footprint_bytes: Reading in host bytes.
            now_s: Monotonic time of the reading; never falls.
        """
        return Decision(
            self._action(footprint_bytes, now_s),
            next_delay_s(self._limit_bytes - footprint_bytes),
        )

    def _action(self, footprint_bytes: int, now_s: float) -> Action:
        if self._is_killed:
            return Action.NONE
        if footprint_bytes >= self._limit_bytes:
            self._is_killed = True
            return Action.KILL
        if footprint_bytes < REARM_RATIO * self._limit_bytes:
            self._is_armed = True
        if footprint_bytes >= WARN_RATIO * self._limit_bytes and self._may_warn(now_s):
            self._is_armed, self._warned_s = False, now_s
            return Action.WARN
        return Action.NONE

    def _may_warn(self, now_s: float) -> bool:
        return self._is_armed or now_s - self._warned_s >= WARNING_PERIOD_S


def next_delay_s(headroom_bytes: int) -> float:
    """Return the time to the next reading in seconds, from host bytes left to the limit."""
    delay_s = headroom_bytes / FASTEST_GROWTH_BYTES_PER_S
    return min(LONGEST_DELAY_S, max(SHORTEST_DELAY_S, delay_s))
