"""Everything the pages are drawn from: one run, judged. Passive values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.domain.outcome import Outcome, Result
from orchestrator.report.wording import mebibytes, one_line

if TYPE_CHECKING:
    from orchestrator.evidence.classified import ClassifiedReport
    from orchestrator.report.attempts import Attempt
    from orchestrator.report.deciding import DecidingRecord
    from orchestrator.report.excerpt import Excerpt
    from orchestrator.report.last_green import GreenRun
    from orchestrator.report.stamps import PhoneStamps
    from orchestrator.report.timeline import Timeline
    from orchestrator.runlog.documents import (
        CheckDocument,
        PlanDocument,
        RunDocument,
        SummaryDocument,
        VerdictDocument,
    )


@dataclass(frozen=True, slots=True)
class PhoneResult:
    """One phone, judged."""

    directory: str  # below `devices/`
    verdict: VerdictDocument
    required: frozenset[str]  # check ids the scenario demands
    span_s: float | None  # from the first launch to the end of the last
    reports: tuple[ClassifiedReport, ...]
    files: tuple[str, ...]  # evidence of this phone, relative to the run directory
    timeline: Timeline | None
    excerpts: tuple[Excerpt, ...] = ()  # of reports about this soak
    stamps: PhoneStamps | None = None  # None: nothing was learnt of the phone
    attempts: tuple[Attempt, ...] = ()  # in order; the last is judged
    records: tuple[DecidingRecord, ...] = ()  # that decided failing checks
    console: str | None = None  # what the app printed, head and tail

    @property
    def failing(self) -> list[CheckDocument]:
        """Checks that fail, then required ones that could not be measured."""
        return [check for check in self.worst_first if self.is_failing(check)]

    @property
    def worst_first(self) -> list[CheckDocument]:
        """All checks: failing ones, missing ones, those without data, then the rest."""
        order = {Result.FAIL: 0, Result.UNMEASURED: 2, Result.PASS: 3, Result.SKIPPED: 4}
        return sorted(
            self.verdict.checks,
            key=lambda check: 1 if self.is_missing(check) else order[Result(check.result)],
        )

    def record_of(self, check: CheckDocument) -> DecidingRecord | None:
        """Return the record that decided a failing check, where it was found."""
        place = (check.launch, check.seq)
        return next((r for r in self.records if (r.launch, r.seq) == place), None)

    def is_failing(self, check: CheckDocument) -> bool:
        """Return whether a check keeps this phone from passing."""
        return check.result == Result.FAIL or self.is_missing(check)

    def is_missing(self, check: CheckDocument) -> bool:
        """Return whether a check was demanded and has no data."""
        return check.result == Result.UNMEASURED and check.id in self.required

    @property
    def death_report(self) -> ClassifiedReport | None:
        """The report that tells of the app's death, if there is one."""
        return next((report for report in self.reports if report.ours and report.in_window), None)

    @property
    def last_facts(self) -> list[tuple[str, str]]:
        """What was last known of the app, as label and value; for a death."""
        verdict, report = self.verdict, self.death_report
        facts = [
            ("cause", verdict.cause),
            ("last footprint", _footprint(verdict)),
            ("limit", None if verdict.limit_bytes is None else mebibytes(verdict.limit_bytes)),
            ("last token index", verdict.last_token_index),
            ("last breadcrumb", verdict.last_breadcrumb),
            ("report", report.file if report else None),
        ]
        return [(label, one_line(str(fact))) for label, fact in facts if fact is not None]


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run, judged."""

    run: RunDocument
    plan: PlanDocument | None  # None: killed before there was one
    summary: SummaryDocument
    phones: tuple[PhoneResult, ...]
    last_green: GreenRun | None = None  # None: no earlier run is known in which all passed

    @property
    def stand_in(self) -> bool:
        """Whether any phone ran the stand-in app instead of the Swift one."""
        return any(phone.verdict.stand_in for phone in self.phones)

    @property
    def virtual(self) -> bool:
        """Whether anything here is about a virtual phone."""
        return self.run.virtual or any(phone.verdict.virtual for phone in self.phones)

    @property
    def headline(self) -> str:
        """The outcome in one sentence."""
        count = len(self.phones)
        passed = sum(phone.verdict.outcome == Outcome.PASS for phone in self.phones)
        noun = "phone" if count == 1 else "phones"
        end = "" if self.run.ended_s is not None else "; the run never ended by itself"
        by = self.run.interrupted_by
        stop = f"; interrupted by {one_line(by)}" if by else ""
        return f"{self.summary.outcome}: {passed} of {count} {noun} passed{stop}{end}"


def _footprint(verdict: VerdictDocument) -> str | None:
    if verdict.last_footprint_bytes is None:
        return None
    size = mebibytes(verdict.last_footprint_bytes)
    if not verdict.limit_bytes:
        return size
    return f"{size} ({verdict.last_footprint_bytes / verdict.limit_bytes:.1%} of the limit)"
