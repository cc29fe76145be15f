"""What a log shows of a run: a line when something changes, and a summary now and then. Pure."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from orchestrator.live import words
from orchestrator.live.state import Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.live.state import PhoneLive, RunLive

SUMMARY_EVERY_S: Final = 60.0
SUMMARY_PHONES: Final = 8


@dataclass(slots=True)
class PlainLog:
    """Remembers what was printed; trims and other daily business are left out."""

    _phases: dict[str, tuple[int, str]] = field(default_factory=dict)
    _concerns: dict[str, tuple[Level, str]] = field(default_factory=dict)
    _summary_s: float | None = None
    _state: str = ""

    def lines(self, run: RunLive) -> list[str]:
        """Return what is new, each line with its time of day in UTC."""
        clock = time.strftime("%H:%M:%S", time.gmtime(run.now_s))
        return [f"{clock} {line}" for line in self._new(run)]

    def _new(self, run: RunLive) -> Iterator[str]:
        state = run.outcome or run.state
        if state != self._state:
            self._state = state
            yield f"run {run.run_id}: {state}, {run.scenario} {words.origin(run)}".rstrip()
        for phone in sorted(run.phones, key=lambda phone: phone.alias):
            yield from self._changes(phone)
        if self._summary_s is None:
            self._summary_s = run.now_s
        if run.now_s - self._summary_s >= SUMMARY_EVERY_S and run.state == "running":
            self._summary_s = run.now_s
            yield from _summary(run)

    def _changes(self, phone: PhoneLive) -> Iterator[str]:
        where = (phone.attempt, words.phase_name(phone))
        if self._phases.get(phone.alias) != where:
            self._phases[phone.alias] = where
            again = f", attempt {phone.attempt}" if phone.attempt > 1 else ""
            yield f"{phone.alias}: {where[1]}{again}"
        concern = (phone.level, phone.concern or "")
        before = self._concerns.get(phone.alias, (Level.CALM, ""))
        self._concerns[phone.alias] = concern
        # The number in a concern changes with every look; its level is what is new.
        if concern[0] > before[0] and concern[0] >= Level.ALARM:
            yield f"{phone.alias}: {concern[1]}"


def _summary(run: RunLive) -> Iterator[str]:
    yield words.phones_counted(run.phones)
    for phone in run.phones[:SUMMARY_PHONES]:
        if phone.phase != "ended":
            yield f"  {phone_words(phone)}"
    if len(run.phones) > SUMMARY_PHONES:
        yield f"  and {len(run.phones) - SUMMARY_PHONES} more"


def phone_words(phone: PhoneLive) -> str:
    """Return one phone as a line without columns."""
    facts = [
        words.phase(phone),
        f"ran/left {words.ran_and_left(phone)}",
        f"context {words.context(phone)}",
        f"{phone.trims} trims",
        f"memory {words.memory_long(phone)}",
        f"{words.speed(phone, ascii_only=True).strip()} tok/s",
        f"thermal {phone.thermal or '-'}",
        f"battery {words.battery(phone)}",
    ]
    return f"{phone.alias}: {', '.join(facts)}"
