"""Follows a run directory that grows: every look reads only what is new."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.domain.errors import RunDirectoryError
from orchestrator.live.cleaning import printable
from orchestrator.live.concern import judged, worst_first
from orchestrator.live.fold import PhoneFold
from orchestrator.live.state import PhoneLive, RunLive
from orchestrator.runlog.documents import (
    HealthDocument,
    PlanDocument,
    RunDocument,
    SummaryDocument,
    SummaryPhone,
)
from orchestrator.runlog.events import Event
from orchestrator.runlog.files import read_document
from orchestrator.runlog.lines import MAX_LINE_BYTES
from orchestrator.runlog.telemetry import MalformedRecordError, decode_record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orchestrator.runlog.layout import RunPaths

LOOK_BYTES: Final = (
    16 * MAX_LINE_BYTES
)  # of all files in one look: a late start catches up in steps


@dataclass(slots=True)
class Tail:
    """An append-only file, read on from where the last look ended."""

    path: Path
    offset: int = 0

    def lines(self, most_bytes: int) -> list[bytes]:
        """Return new whole lines; the rest of a torn one waits for its end."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                data = file.read(most_bytes)
        except OSError:
            return []
        end = data.rfind(b"\n") + 1
        # A line that never ends is skipped, as every reader of a run does.
        self.offset += end if end or len(data) < MAX_LINE_BYTES else len(data)
        return data[:end].split(b"\n")[:-1]

    def unread_bytes(self) -> int:
        """Return how much is left."""
        try:
            return max(0, self.path.stat().st_size - self.offset)
        except OSError:
            return 0

    def age_s(self, now_s: float) -> float | None:
        """Return how long ago something was written."""
        try:
            return max(0.0, now_s - self.path.stat().st_mtime)
        except OSError:
            return None


@dataclass(slots=True)
class _Followed:
    fold: PhoneFold
    directory: str
    tail: Tail
    attempt: int = 1
    launch: int = 1


@dataclass(slots=True)
class RunFollower:
    """One run.

    Args:
        paths: Its directory.
        owner_lives: Says whether the process of a run that has not ended is there.

    Raises:
        RunDirectoryError: From `look`, if it is no run directory or has no plan yet.
    """

    paths: RunPaths
    owner_lives: Callable[[RunDocument], bool] = lambda _: True
    _plan: PlanDocument | None = None
    _stopped_by: str | None = None
    _events: Tail = field(init=False)
    _phones: dict[str, _Followed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._events = Tail(self.paths.events)

    def look(self, now_s: float) -> RunLive:
        """Read what is new and return the run as it is now; `now_s` is the wall clock."""
        run = read_document(self.paths.run, RunDocument)
        plan = self._planned()
        left_bytes = self._read(LOOK_BYTES)
        summary = self._summary(run)
        outcomes = {phone.udid: phone for phone in summary.phones} if summary else {}
        ended = run.ended_s is not None
        phones = [
            _with_outcome(
                followed.fold.view(followed.tail.age_s(now_s) if not ended else None),
                outcomes.get(udid),
            )
            for udid, followed in self._phones.items()
        ]
        duration_s = plan.scenario.get("duration_s")
        return RunLive(
            run_id=run.run_id,
            state="ended" if ended else "running" if self.owner_lives(run) else "left",
            started_s=run.started_s,
            now_s=now_s,
            ended_s=run.ended_s,
            virtual=run.virtual,
            stand_in=plan.app.kind == "stand-in",
            scenario=str(plan.scenario.get("name", "")),
            duration_s=float(duration_s) if isinstance(duration_s, int | float) else None,
            phones=worst_first(phones),
            stopped_by=self._stopped_by,
            unread_bytes=left_bytes,
            outcome=summary.outcome if summary else None,
        )

    def _planned(self) -> PlanDocument:
        if self._plan is None:
            self._plan = read_document(self.paths.plan, PlanDocument)
            duration_s = self._plan.scenario.get("duration_s")
            limit_s = float(duration_s) if isinstance(duration_s, int | float) else None
            for phone in self._plan.phones:
                stream = self.paths.device(phone.directory).attempt(1).stream(1)
                self._phones[phone.udid] = _Followed(
                    PhoneFold(phone, limit_s), phone.directory, Tail(stream)
                )
        return self._plan

    def _read(self, budget_bytes: int) -> int:
        decoder = msgspec.json.Decoder(Event)
        # A phone's records are read up to a new attempt, whose events reset what they showed.
        for line in self._events.lines(budget_bytes):
            try:
                event = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            followed = self._phones.get(event.udid or "")
            if followed is not None:
                followed.fold.on_event(event)
            elif event.kind == "interrupted":
                self._stopped_by = printable(str(event.facts.get("by")))
        share_bytes = max(MAX_LINE_BYTES, budget_bytes // max(1, len(self._phones)))
        for followed in self._phones.values():
            self._read_phone(followed, share_bytes)
        tails = [self._events, *(followed.tail for followed in self._phones.values())]
        return sum(tail.unread_bytes() for tail in tails)

    def _read_phone(self, followed: _Followed, most_bytes: int) -> None:
        fold = followed.fold
        # An earlier attempt shows nothing any more; an earlier launch is read to its end first.
        if fold.attempt != followed.attempt or (
            fold.launch != followed.launch and not followed.tail.unread_bytes()
        ):
            followed.attempt, followed.launch = fold.attempt, fold.launch
            attempt = self.paths.device(followed.directory).attempt(followed.attempt)
            followed.tail = Tail(attempt.stream(followed.launch))
        if followed.fold.gate_battery_percent is None:
            followed.fold.gate_battery_percent = self._gate_battery_percent(followed)
        for line in followed.tail.lines(most_bytes):
            try:
                followed.fold.on_record(decode_record(line))
            except MalformedRecordError:
                continue

    def _gate_battery_percent(self, followed: _Followed) -> float | None:
        attempt = self.paths.device(followed.directory).attempt(followed.attempt)
        try:
            return read_document(attempt.health, HealthDocument).battery_percent
        except RunDirectoryError:
            return None  # not written yet

    def _summary(self, run: RunDocument) -> SummaryDocument | None:
        """Return the report's summary; one of before a resume says nothing of this run."""
        if run.ended_s is None:
            return None
        try:
            return read_document(self.paths.summary_json, SummaryDocument)
        except RunDirectoryError:
            return None


def _with_outcome(phone: PhoneLive, found: SummaryPhone | None) -> PhoneLive:
    if found is None:
        return phone
    known = {"phase": "ended", "outcome": found.outcome, "cause": found.cause}
    return judged(msgspec.structs.replace(phone, **known))
