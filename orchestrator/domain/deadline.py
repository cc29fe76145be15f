"""A time limit as a value: nested calls share one, on the monotonic clock."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point in monotonic time by which a phase must be over."""

    at_s: float  # time.monotonic()
    limit_s: float  # the span it was made with, for messages

    @classmethod
    def after(cls, limit_s: float) -> Deadline:
        """Return the deadline `limit_s` seconds from now."""
        return cls(time.monotonic() + limit_s, limit_s)

    def remaining_s(self) -> float:
        """Return the seconds left, never below 0."""
        return max(0.0, self.at_s - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return self.remaining_s() == 0.0

    def within(self, limit_s: float) -> Deadline:
        """Return the earlier of this deadline and one `limit_s` seconds from now."""
        nested = Deadline.after(limit_s)
        return nested if nested.at_s < self.at_s else self
