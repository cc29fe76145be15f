"""Times of diagnostic reports: the phone's wall clock with its zone, turned into UTC.

Reports print `2026-01-10 01:18:15.51 +0800` with two or four digits of fraction, sometimes ISO
8601, and now and then no zone at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

_FORM: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[ T]([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r"(?:\.([0-9]{1,9}))?\s*(Z|[+-][0-9]{2}:?[0-9]{2})?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class ReportTime:
    """When a report was written, by the phone's clock."""

    utc: datetime  # aware
    naive: bool  # the report gave no zone: `utc` may be off by up to 14 h and orders nothing

    @property
    def unix_s(self) -> float | None:
        """Unix seconds by the phone's clock, None where the zone is unknown."""
        return None if self.naive else self.utc.timestamp()


def parse_time(text: object) -> ReportTime | None:
    """Return the time of a report, or None for anything that is not one."""
    match = _FORM.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        return None
    *parts, fraction, zone = match.groups()
    year, month, day, hour, minute, second = map(int, parts)
    microsecond = int((fraction or "0")[:6].ljust(6, "0"))
    try:
        local = datetime(year, month, day, hour, minute, second, microsecond, _zone(zone))
        return ReportTime(local.astimezone(UTC), naive=zone is None)
    except (ValueError, OverflowError):
        return None


def first_certain(*texts: object) -> ReportTime | None:
    """Return the first time that has a zone, else the first naive one, else None."""
    times = [time for time in map(parse_time, texts) if time is not None]
    return next((time for time in times if not time.naive), times[0] if times else None)


def _zone(zone: str | None) -> timezone:
    if zone is None or zone == "Z":
        return UTC
    digits = zone[1:].replace(":", "")
    span = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-span if zone[0] == "-" else span)
