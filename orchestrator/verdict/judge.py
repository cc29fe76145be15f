"""One pass over a phone's telemetry to its verdict: checks, cause, outcome, and what to draw.

Pure: the records come as lines, everything else as values. FAIL is the product and wins over
everything but an unfinished run; ERROR is the lab; PASS needs every required check to have
been measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.domain.outcome import Cause, Outcome, Result
from orchestrator.runlog.documents import CheckDocument, VerdictDocument
from orchestrator.runlog.telemetry import MemoryWarning
from orchestrator.verdict.catalog import CHECKS
from orchestrator.verdict.cause import Diagnosis, diagnose
from orchestrator.verdict.check import Check, Closing, Setting
from orchestrator.verdict.ending import ending_of
from orchestrator.verdict.environment import Environment
from orchestrator.verdict.expectation import Expectation
from orchestrator.verdict.intake import plain, read_record
from orchestrator.verdict.pace import Pace
from orchestrator.verdict.scenario import scenario_of
from orchestrator.verdict.series import Series, SeriesBuilder
from orchestrator.verdict.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from orchestrator.evidence.classified import ClassifiedReport
    from orchestrator.runlog.documents import (
        AbsentPhone,
        DeviceDocument,
        EvidenceDocument,
        PlanDocument,
        PlannedPhone,
        Requirement,
    )

# A lab error or a kill makes these fail or stay open by itself: they prove no broken contract.
_ABOUT_THE_END: Final = frozenset(
    {"jetsam.none", "crash.none", "soak.completed", "telemetry.complete"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhoneCase:
    """Everything known about one phone of a run besides its telemetry."""

    plan: PlanDocument
    phone: PlannedPhone
    device: DeviceDocument | None
    evidence: EvidenceDocument | None
    reports: Sequence[ClassifiedReport] = ()
    run_finished: bool = True  # False where the orchestrator was killed
    interrupted_by: str | None = None
    # Paths of this phone's evidence that differ; None where the run has no manifest.
    manifest_differences: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one phone's soak says, and how it went."""

    verdict: VerdictDocument
    series: Series
    environment: Environment


def judge(case: PhoneCase, lines: Iterable[bytes]) -> Judgement:
    """Return the verdict on one phone.

    Args:
        case: The plan and the evidence.
        lines: Raw lines of `telemetry.ndjson`, newlines included; hostile.

    Raises:
        RunDirectoryError: If the plan holds no readable scenario.
    """
    bench = _Bench(case)
    for line in lines:
        bench.take(line)
    return bench.finish()


class _Bench:
    """The folds of one pass."""

    def __init__(self, case: PhoneCase) -> None:
        scenario = self._scenario = scenario_of(case.plan)
        self._case = case
        self._expectation = Expectation(case.phone, scenario)
        self._pace = Pace()
        setting = Setting(
            plan=case.plan,
            phone=case.phone,
            device=case.device,
            evidence=case.evidence,
            scenario=scenario,
            expectation=self._expectation,
            pace=self._pace,
            manifest_differences=tuple(case.manifest_differences or ()),
        )
        self._checks: list[Check] = [check(setting) for check in CHECKS]
        # Only those that look: a call a record of the others is a tenth of all time.
        self._line_observers = [
            check for check in self._checks if type(check).observe_line is not Check.observe_line
        ]
        self._observers = [
            check for check in self._checks if type(check).observe is not Check.observe
        ]
        self._tally = Tally()
        self._series = SeriesBuilder()
        self._environment = Environment()

    def take(self, line: bytes) -> None:
        record = read_record(line)
        for check in self._line_observers:
            check.observe_line(line, record)
        if record is None:
            return
        self._tally.observe(record)
        self._expectation.observe(record)
        self._pace.observe(record)
        if isinstance(record, MemoryWarning):
            self._tally.warned_at(self._expectation.row_count)
        self._series.observe(record, self._expectation.deviations)
        self._environment.observe(record)
        for check in self._observers:
            check.observe(record)

    def finish(self) -> Judgement:
        case = self._case
        ending = ending_of(
            self._tally,
            case.evidence,
            case.reports,
            run_finished=case.run_finished,
            interrupted_by=case.interrupted_by,
            launches_due=self._scenario.relaunches.count + 1,
        )
        closing = Closing(ending, diagnose(ending), self._tally)
        checks = [check.finish(closing) for check in self._checks]
        ruling = _rule(case.plan.requires, closing, checks)
        return Judgement(
            _document(case, closing, ruling, checks), self._series.finish(), self._environment
        )


@dataclass(frozen=True, slots=True)
class _Ruling:
    outcome: Outcome
    cause: Cause
    explanation: str


def _rule(required: Requirement, closing: Closing, checks: Sequence[CheckDocument]) -> _Ruling:
    """Return the outcome: an unfinished run, then the product, then the lab, then missing facts."""
    diagnosis = closing.diagnosis
    given = diagnosis.outcome(closing.ending)
    if given in (Outcome.ABORTED, Outcome.FAIL):
        return _Ruling(given, diagnosis.cause, diagnosis.sentence)
    failed = [check for check in checks if check.result == Result.FAIL]
    if given is Outcome.ERROR:
        failed = [check for check in failed if check.id not in _ABOUT_THE_END]
    if failed:
        return _Ruling(Outcome.FAIL, Cause.ASSERTION_FAILED, _of_failures(failed, diagnosis, given))
    if given is Outcome.ERROR:
        return _Ruling(given, diagnosis.cause, diagnosis.sentence)
    missing = _missing(required, closing.tally, checks)
    if missing is not None:
        return _Ruling(Outcome.ERROR, diagnosis.cause, missing)
    return _Ruling(Outcome.PASS, diagnosis.cause, diagnosis.sentence)


def _of_failures(failed: Sequence[CheckDocument], diagnosis: Diagnosis, given: Outcome) -> str:
    first = failed[0]
    others = f" {len(failed) - 1} more failed." if len(failed) > 1 else ""
    besides = f" Besides: {diagnosis.sentence}" if given is Outcome.ERROR else ""
    return f"{first.id} failed: {first.reason}.{others}{besides}"


def _missing(required: Requirement, tally: Tally, checks: Sequence[CheckDocument]) -> str | None:
    """Return what keeps a healthy soak from passing: facts or exercise that are not there."""
    results = {check.id: check for check in checks}
    for check_id in required.checks:
        check = results.get(check_id)
        if check is None:
            return f"The scenario requires {check_id}, which this version cannot measure."
        if check.result == Result.UNMEASURED:
            return f"{check_id} is required and was not measured: {check.reason}."
    return _unexercised(required, tally)


def _unexercised(required: Requirement, tally: Tally) -> str | None:
    shortfalls = [
        f"{have:g} of {need:g} {what}"
        for have, need, what in (
            (tally.trims, required.min_trims, "trims"),
            (tally.kernel_evictions, required.min_evictions, "evictions by the kernel's warning"),
            (round(tally.inference_s, 1), required.min_inference_s, "seconds of inference"),
        )
        if have < need
    ]
    if not shortfalls:
        return None
    return f"The soak did not exercise the contract enough: {', '.join(shortfalls)}."


def _document(
    case: PhoneCase, closing: Closing, ruling: _Ruling, checks: list[CheckDocument]
) -> VerdictDocument:
    tally, phone = closing.tally, case.phone
    device: DeviceDocument | PlannedPhone = case.device or phone
    return VerdictDocument(
        udid=phone.udid,
        alias=phone.alias,
        model=phone.model,
        product_type=device.product_type,
        os=device.os,
        virtual=phone.virtual,
        stand_in=tally.stand_in or case.plan.app.kind == "stand-in",
        outcome=ruling.outcome,
        cause=ruling.cause,
        explanation=plain(ruling.explanation),
        checks=checks,
        tokens_total=tally.tokens_total,
        trims=tally.trims,
        evictions=tally.evictions,
        inference_s=round(tally.inference_s, 3),
        last_footprint_bytes=tally.last_footprint_bytes,
        limit_bytes=tally.limit_bytes,
        last_token_index=tally.tokens_total - 1 if tally.tokens_total else None,
        last_breadcrumb=tally.last_breadcrumb,
        first_warning_at_n=tally.first_warning_at_n,
    )


def absent_verdict(absent: AbsentPhone, *, virtual: bool = False) -> VerdictDocument:
    """Return the verdict on a phone that `expect:` lists and nobody found."""
    return VerdictDocument(
        udid=absent.udid,
        alias=absent.alias,
        model="unknown",
        product_type="unknown",
        os="unknown",
        virtual=virtual,
        stand_in=False,
        outcome=Outcome.ERROR,
        cause=Cause.DEVICE_LOST,
        explanation=f"The expected phone was not found: {absent.reason.rstrip('.')}.",
        checks=[],
    )
