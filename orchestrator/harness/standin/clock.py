"""Time of a launch, and the pace at which predictions are allowed to end."""

from __future__ import annotations

import time
from typing import Final

NS_PER_S: Final = 1_000_000_000
_MOST_LAG_NS: Final = NS_PER_S


class LaunchClock:
    """Monotonic nanoseconds since the launch."""

    def __init__(self) -> None:
        self._origin_ns = time.monotonic_ns()

    def now_ns(self) -> int:
        """Return nanoseconds since the launch."""
        return time.monotonic_ns() - self._origin_ns

    def sleep_until_ns(self, at_ns: int) -> None:
        """Return at `at_ns`, or at once where that has passed."""
        wait_ns = at_ns - self.now_ns()
        if wait_ns > 0:
            time.sleep(wait_ns / NS_PER_S)


class Pace:
    """Absolute deadlines of predictions, so that late steps do not add up."""

    def __init__(self, clock: LaunchClock) -> None:
        self._clock = clock
        self._due_ns: int | None = None  # end of the prediction before

    def wait(self, started_ns: int, span_s: float) -> None:
        """Return when a prediction of `span_s` seconds is due.

        After a pause of over a second (background, suspension) the schedule starts anew: the phone
        would not compute faster to catch up either.
        """
        due_ns = self._due_ns
        if due_ns is None or started_ns - due_ns > _MOST_LAG_NS:
            due_ns = started_ns
        self._due_ns = due_ns + int(span_s * NS_PER_S)
        self._clock.sleep_until_ns(self._due_ns)
