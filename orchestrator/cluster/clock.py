"""How far another host's clock is from this one's, from the times of a question. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question for the time; wall clocks, Unix seconds."""

    asked_s: float  # here
    told_s: float  # there
    answered_s: float  # here


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """Another clock minus this one."""

    offset_s: float
    uncertainty_s: float  # the truth is within offset +- this, if no clock was set meanwhile


def clock_offset(exchanges: Sequence[Exchange]) -> ClockOffset:
    """Return the offset by the quickest exchange, as NTP's clock filter does.

    Raises:
        ValueError: If there is no exchange.

    Source: RFC 5905, section 10.
    """
    if not exchanges:
        raise ValueError("no exchange")
    best = min(exchanges, key=lambda exchange: exchange.answered_s - exchange.asked_s)
    half_s = max(0.0, best.answered_s - best.asked_s) / 2
    return ClockOffset(best.told_s - (best.asked_s + half_s), half_s)
