"""Decode speed apart for each thermal state of the phone."""

from __future__ import annotations

from statistics import fmean, median
from typing import TYPE_CHECKING, Final

from orchestrator.verdict.pace import NOMINAL
from orchestrator.verdict.tally import NS_PER_S
from orchestrator.verdict.trend import Trace, trend_of

if TYPE_CHECKING:
    from orchestrator.verdict.pace import Step
    from orchestrator.verdict.trend import Trend

COOL: Final = (NOMINAL, "fair")  # iOS does not throttle much below `serious`
_STATES: Final = (*COOL, "serious", "critical")


class _Windows:
    """Decode speed in windows of equal numbers of steps, for one thermal state."""

    def __init__(self, steps_each: int) -> None:
        self._steps_each = steps_each
        self._latencies_ns: list[int] = []
        self.trace = Trace()  # of seconds of decoding in this state, and tokens per second

    def take(self, step: Step, at_s: float, *, paced: bool) -> None:
        """Take the next step; a full window gives a point."""
        self._latencies_ns.append(step.latency_ns)
        if len(self._latencies_ns) == self._steps_each:
            typical_ns = median(self._latencies_ns) if paced else fmean(self._latencies_ns)
            self.trace.add(at_s, NS_PER_S / typical_ns)
            self._latencies_ns.clear()


class SpeedByHeat:
    """Speed windows for each thermal state; time is the time spent decoding."""

    _STEPS_EACH: Final = 32
    _LEAST_WINDOWS: Final = 3  # that a median is taken of

    def __init__(self) -> None:
        self._windows: dict[str, _Windows] = {}
        self._decoding_ns = 0

    def take(self, step: Step, thermal: str, *, paced: bool) -> None:
        """Take the next step; an unknown thermal state gives nothing.

        Args:
            step: After the warm-up.
            thermal: The phone's state when it ran.
            paced: The engine waits for its set speed. Single late steps are then the host's doing,
                and the median of a window counts; of a model they are stutter, and the mean counts.
        """
        self._decoding_ns += step.latency_ns
        if thermal in _STATES:
            windows = self._windows.setdefault(thermal, _Windows(self._STEPS_EACH))
            windows.take(step, self._decoding_ns / NS_PER_S, paced=paced)

    def speeds(self) -> dict[str, float]:
        """Return the median speed of each state with enough windows, coolest first."""
        return {
            state: median(speed for _, speed in self._windows[state].trace.points)
            for state in _STATES
            if state in self._windows
            and len(self._windows[state].trace.points) >= self._LEAST_WINDOWS
        }

    def trends(self) -> dict[str, Trend]:
        """Return the trend of speed in each state with enough windows, coolest first."""
        found = {
            state: trend_of(self._windows[state].trace.points)
            for state in _STATES
            if state in self._windows
        }
        return {state: trend for state, trend in found.items() if trend is not None}
