"""A phone's clock, which may be wrong. Apps run on the host's and do not see the error."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(slots=True)
class PhoneClock:
    """The host's clock and what the phone's is ahead of it."""

    skew_s: float = 0.0

    @property
    def skew_ns(self) -> int:
        """How far ahead the phone is, in nanoseconds."""
        return round(self.skew_s * 1e9)

    def time_s(self) -> float:
        """Return Unix time as the phone has it."""
        return time.time() + self.skew_s

    def time_ns(self) -> int:
        """Return Unix time as the phone has it, in nanoseconds."""
        return time.time_ns() + self.skew_ns

    def now(self) -> datetime:
        """Return the time with the host's offset: a virtual phone lives in its time zone."""
        return (datetime.now(UTC) + timedelta(seconds=self.skew_s)).astimezone()
