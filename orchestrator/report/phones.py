"""All phones of a run, judged from their part of the run directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.report.raw_reports import classified_reports
from orchestrator.report.result import PhoneResult
from orchestrator.report.rundir import read_phone
from orchestrator.report.timeline import Track, draw
from orchestrator.verdict.judge import Judgement, PhoneCase, absent_verdict, judge
from orchestrator.verdict.series import Bucket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.report.rundir import RunRecord
    from orchestrator.report.timeline import Timeline
    from orchestrator.runlog.documents import AbsentPhone, PlanDocument, PlannedPhone

_MIB: Final = 1024**2


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
    reports = classified_reports(phone, plan.app.name)
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
    return PhoneResult(
        directory=planned.directory,
        verdict=judgement.verdict,
        required=frozenset(plan.requires.checks),
        span_s=phone.span_s,
        reports=reports,
        files=phone.files(),
        timeline=_timeline(judgement, planned),
    )


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


def _timeline(judgement: Judgement, planned: PlannedPhone) -> Timeline | None:
    series, limit_bytes = judgement.series, judgement.verdict.limit_bytes
    tracks = (
        Track(
            title="Footprint",
            unit="MiB",
            buckets=_in_mebibytes(series.footprint_bytes),
            bound=None if limit_bytes is None else limit_bytes / _MIB,
            bound_name="limit",
        ),
        Track(
            title="Context",
            unit="tokens",
            buckets=tuple(series.rows),
            bound=float(planned.expected.budget_tokens),  # the host's, not the app's own
            bound_name="budget",
        ),
        Track("Speed", "tokens/s", tuple(series.tokens_per_s), None, ""),
    )
    return draw(tracks, series.marks, series.marks_left_out)


def _in_mebibytes(buckets: Sequence[Bucket]) -> tuple[Bucket, ...]:
    return tuple(Bucket(b.start_s, b.low / _MIB, b.high / _MIB) for b in buckets)
