"""Which phone deserves a look, and why: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.live.state import Level, PhoneLive

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SILENT_S: Final = 15.0  # heartbeats come every 5 s
FULL_SHARE: Final = 0.9  # of the footprint's limit
NEAR_SHARE: Final = 0.8
SLOWER: Final = -0.2
LOW_BATTERY_PERCENT: Final = 20.0
_HOT: Final = frozenset({"serious", "critical"})


def judged(phone: PhoneLive) -> PhoneLive:
    """Return a phone with its level and the reason for it."""
    level, concern = max(_concerns(phone), key=lambda found: found[0], default=(Level.CALM, None))
    return msgspec.structs.replace(phone, level=level, concern=concern)


def worst_first(phones: Iterable[PhoneLive]) -> list[PhoneLive]:
    """Return phones by level, then by alias: a calm phone keeps its place."""
    return sorted(phones, key=lambda phone: (-phone.level, phone.alias))


def memory_share(phone: PhoneLive) -> float | None:
    """Return footprint over limit."""
    if phone.footprint_bytes is None or not phone.limit_bytes or phone.limit_bytes < 0:
        return None
    return phone.footprint_bytes / phone.limit_bytes


def _concerns(phone: PhoneLive) -> Iterator[tuple[Level, str]]:
    if phone.outcome in {"FAIL", "ERROR"}:
        yield Level.FAILED, f"{phone.outcome} {phone.cause or ''}".strip()
    elif phone.outcome is None and phone.cause is not None:
        yield Level.FAILED, phone.cause
    elif phone.outcome is None and phone.died is not None:
        yield Level.ALARM, phone.died
    if phone.phase == "ended":
        return
    yield from _alarms(phone)
    yield from _notes(phone)


def _alarms(phone: PhoneLive) -> Iterator[tuple[Level, str]]:
    if phone.silent_s is not None and phone.silent_s > SILENT_S:
        yield Level.ALARM, f"no record for {phone.silent_s:.0f} s"
    context, budget = phone.context_tokens, phone.budget_tokens
    if context is not None and budget is not None and context > budget:
        yield Level.ALARM, f"context over budget by {context - budget}"
    share = memory_share(phone)
    if share is not None and share >= FULL_SHARE:
        yield Level.ALARM, f"memory at {share:.0%} of its limit"
    if phone.thermal in _HOT:
        yield Level.ALARM, f"thermal {phone.thermal}"


def _notes(phone: PhoneLive) -> Iterator[tuple[Level, str]]:
    share = memory_share(phone)
    if share is not None and NEAR_SHARE <= share < FULL_SHARE:
        yield Level.NOTE, f"memory at {share:.0%} of its limit"
    if phone.trend is not None and phone.trend < SLOWER:
        yield Level.NOTE, f"{-phone.trend:.0%} slower than the minute before"
    battery = phone.battery_percent
    if battery is not None and battery < LOW_BATTERY_PERCENT and phone.charging is False:
        yield Level.NOTE, f"battery {battery:.0f} %"
    if phone.attempt > 1:
        yield Level.NOTE, f"attempt {phone.attempt}"
