"""All phones of a run, judged from their part of the run directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from orchestrator.domain.outcome import Cause, Outcome, Result
from orchestrator.report.attempts import attempt_of
from orchestrator.report.console import console_text
from orchestrator.report.deciding import deciding_records
from orchestrator.report.excerpt import excerpt_of
from orchestrator.report.raw_reports import read_raw_reports
from orchestrator.report.result import PhoneResult
from orchestrator.report.rundir import read_phone
from orchestrator.report.stamps import Surroundings, stamps_of
from orchestrator.report.timeline import timeline_of
from orchestrator.verdict.judge import Judgement, PhoneCase, absent_verdict, judge

if TYPE_CHECKING:
    from orchestrator.report.rundir import PhoneRecord, RunRecord
    from orchestrator.report.timeline import Timeline
    from orchestrator.runlog.documents import AbsentPhone, PlanDocument, PlannedPhone

# The app did not end before its time.
_LIVED: Final = frozenset({Cause.COMPLETED, Cause.ASSERTION_FAILED})


def judge_phones(record: RunRecord) -> tuple[PhoneResult, ...]:
    """Return the planned phones and the expected ones that nobody found, in the plan's order."""
    plan = record.plan
    if plan is None:
        return ()
    found = [_judged(record, plan, phone) for phone in plan.phones]
    missing = [_absent(record, phone) for phone in plan.absent]
    return (*found, *missing)


def _judged(record: RunRecord, plan: PlanDocument, planned: PlannedPhone) -> PhoneResult:
    phone = read_phone(record, planned.directory, planned.udid)
    raw = read_raw_reports(phone, plan.app.name)
    reports = tuple(classified for _, classified in raw)
    case = PhoneCase(
        plan=plan,
        phone=planned,
        device=phone.device,
        evidence=phone.evidence,
        reports=reports,
        run_finished=record.finished,
        interrupted_by=record.run.interrupted_by,
        manifest_differences=record.differences_of(planned.directory),
    )
    judgement = judge(case, phone.lines())
    verdict = structs.replace(judgement.verdict, host=planned.host)
    failing = [check for check in verdict.checks if check.result == Result.FAIL]
    return PhoneResult(
        directory=planned.directory,
        verdict=verdict,
        required=frozenset(plan.requires.checks),
        span_s=phone.span_s,
        reports=reports,
        files=phone.files(),
        timeline=_timeline(judgement, plan, planned),
        excerpts=tuple(filter(None, (excerpt_of(*pair) for pair in raw))),
        stamps=stamps_of(_surroundings(judgement, plan, planned, phone)),
        attempts=tuple(attempt_of(evidence) for _, evidence in phone.attempts),
        records=deciding_records(phone.lines(), failing),
        console=console_text(phone.attempts[-1][0].console) if phone.attempts else None,
    )


def _surroundings(
    judgement: Judgement, plan: PlanDocument, planned: PlannedPhone, phone: PhoneRecord
) -> Surroundings:
    return Surroundings(plan, planned, phone.device, phone.health(), judgement.environment)


def _absent(record: RunRecord, absent: AbsentPhone) -> PhoneResult:
    return PhoneResult(
        directory=absent.directory,
        verdict=absent_verdict(absent, virtual=record.run.virtual),
        required=frozenset(),
        span_s=None,
        reports=(),
        files=(),
        timeline=None,
    )


def _timeline(judgement: Judgement, plan: PlanDocument, planned: PlannedPhone) -> Timeline | None:
    verdict = judgement.verdict
    return timeline_of(
        judgement.series,
        limit_bytes=verdict.limit_bytes,
        headroom_percent=plan.headroom_percent,
        budget_tokens=planned.expected.budget_tokens,
        died=verdict.outcome != Outcome.PASS and verdict.cause not in _LIVED,
    )
