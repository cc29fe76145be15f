"""`--until HH:MM`: when a run's window closes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

UNTIL: Final = "until"  # what `run.json` names as the reason of the end


def next_occurrence(text: str, now: datetime) -> datetime:
    """Return the next time that a clock shows `HH:MM`: pure.

    Args:
        text: Hours and minutes, 24 hours.
        now: With its zone; the answer has the same.

    Raises:
        ValueError: If the text is no time of day.
    """
    at = datetime.strptime(text, "%H:%M").time()  # noqa: DTZ007 - a time of day has no zone
    today = now.replace(hour=at.hour, minute=at.minute, second=0, microsecond=0)
    return today if today > now else today + timedelta(days=1)
