"""Judged runs for tests of the pages: a run is what the test says and plain everywhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import structs

from orchestrator.domain.outcome import Outcome, exit_code_of, outcome_of_run
from orchestrator.evidence.classified import ClassifiedReport
from orchestrator.report.result import PhoneResult, RunResult
from orchestrator.report.stamps import PhoneStamps
from orchestrator.report.timeline import Timeline, timeline_of
from orchestrator.runlog.documents import (
    CheckDocument,
    PlanDocument,
    PlannedApp,
    Requirement,
    RunDocument,
    SkippedPhone,
    SummaryDocument,
    SummaryPhone,
    VerdictDocument,
)
from orchestrator.verdict.series import Bucket, Mark, Series, ThermalSpan

if TYPE_CHECKING:
    from orchestrator.report.last_green import GreenRun

MIB = 1024**2
STARTED_S = 1_768_046_400.0
HOSTILE = 'Bad\x00\x1b[31m<&">\ufffe\ud800]]>|`*_\u202e\n# @all <script>alert(1)</script>'


def check(
    check_id: str = "trim.on-schedule", result: str = "pass", **facts: object
) -> CheckDocument:
    return structs.replace(CheckDocument(id=check_id, result=result), **facts)


def verdict(*checks: CheckDocument, **facts: object) -> VerdictDocument:
    plain = VerdictDocument(
        udid="00008130-0000000000000001",
        alias="desk-1",
        model="iPhone 15 Pro",
        product_type="iPhone16,1",
        os="18.5",
        virtual=False,
        stand_in=False,
        outcome="PASS",
        cause="completed",
        explanation="The soak completed and every required check passes.",
        checks=list(checks),
    )
    return structs.replace(plain, **facts)


def death(**facts: object) -> VerdictDocument:
    """Return the verdict of an app that was killed for its own limit."""
    plain = verdict(
        check("jetsam.none", "fail", reason="the app was killed", value=1, limit=0),
        outcome="FAIL",
        cause="jetsam_per_process_limit",
        explanation="The app passed its memory limit and was killed.",
        last_footprint_bytes=3240 * MIB,
        limit_bytes=3376 * MIB,
        last_token_index=4711,
        last_breadcrumb="trim",
    )
    return structs.replace(plain, **facts)


def kill_report(
    file: str = "devices/desk-1-00000001/attempts/1/reports/JetsamEvent.ips",
    *,
    ours: bool = True,
    summary: str = "SoakHarness was killed by jetsam",
) -> ClassifiedReport:
    return ClassifiedReport(
        file=file,
        kind="jetsam",
        ours=ours,
        in_window=True,
        launch=1,
        reason="per-process-limit",
        foreground=True,
        footprint_bytes=3240 * MIB,
        pid=501,
        at_s=STARTED_S,
        summary=summary,
    )


def phone(
    judged: VerdictDocument,
    *,
    reports: tuple[ClassifiedReport, ...] = (),
    files: tuple[str, ...] = ("devices/desk-1-00000001/telemetry.ndjson",),
    timeline: Timeline | None = None,
    **facts: object,
) -> PhoneResult:
    plain = PhoneResult(
        directory="desk-1-00000001",
        verdict=judged,
        required=frozenset({"trim.on-schedule"}),
        span_s=125.0,
        reports=reports,
        files=files,
        timeline=timeline,
    )
    return replace(plain, **facts)  # type: ignore[arg-type]


def series(**channels: object) -> Series:
    """Return a series of 100 s in which the footprint rises and one of each event happens."""
    given: dict[str, object] = {
        "span_s": 1.0,
        "end_s": 100.0,
        "footprint_bytes": (Bucket(0.0, 9e8, 1e9), Bucket(50.0, 1e9, 2e9)),
        "own_bytes": (Bucket(0.0, 9e8, 9e8), Bucket(50.0, 9e8, 1e9)),
        "peak_bytes": (Bucket(0.0, 1e9, 1e9), Bucket(50.0, 2e9, 2e9)),
        "rows": (Bucket(0.0, 0.0, 800.0), Bucket(50.0, 500.0, 1024.0)),
        "tokens_per_s": (Bucket(1.0, 180.0, 180.0), Bucket(50.0, 170.0, 200.0)),
        "battery_percent": (Bucket(0.0, 80.0, 80.0), Bucket(90.0, 71.0, 71.0)),
        "marks": MARKS,
        "thermal": (ThermalSpan(0.0, "nominal"), ThermalSpan(60.0, "fair")),
        "thermal_left_out": 0,
    }
    return Series(**{**given, **channels})  # type: ignore[arg-type]


MARKS = (
    Mark(0.0, "launch", 1),
    Mark(10.0, "trim", 1),
    Mark(19.0, "memory_warning", 1),
    Mark(20.0, "evict", 1),
)


def timeline(**channels: object) -> Timeline | None:
    return timeline_of(
        series(**channels),
        limit_bytes=3376 * MIB,
        headroom_percent=20.0,
        budget_tokens=1024,
        died=False,
    )


def timeline_of_a_death() -> Timeline:
    drawn = timeline()
    assert drawn is not None
    return replace(drawn, died=True)


def stamps(**facts: str) -> PhoneStamps:
    plain = PhoneStamps(
        os_build="22F76",
        model_digest="d5e1c6554b1f",
        app_build="release",
        app_sha256="b7" * 32,
        app_commit="c0" * 20,
        others=(("Charger", "connected"),),
    )
    return replace(plain, **facts)  # type: ignore[arg-type]


def plan(*skipped: SkippedPhone) -> PlanDocument:
    return PlanDocument(
        run_id="20260110T120000Z-abc123",
        seed=7,
        scenario={},
        requires=Requirement(checks=["trim.on-schedule"]),
        thresholds={},
        headroom_percent=10.0,
        app=PlannedApp(kind="swift", bundle_id="x", name="SoakHarness", package_sha256="0" * 64),
        phones=[],
        skipped=list(skipped),
    )


def run(
    *phones: PhoneResult,
    skipped: tuple[SkippedPhone, ...] = (),
    last_green: GreenRun | None = None,
    **facts: object,
) -> RunResult:
    plain = RunDocument(
        run_id="20260110T120000Z-abc123",
        started_s=STARTED_S,
        virtual=False,
        fleet_version="0.1.0",
        host="Darwin arm64",
        arguments=[],
        owner_pid=1,
        ended_s=STARTED_S + 300,
    )
    document = structs.replace(plain, **facts)
    outcomes = [Outcome(phone.verdict.outcome) for phone in phones]
    summary = SummaryDocument(
        run_id=document.run_id,
        outcome=outcome_of_run(outcomes),
        exit_code=exit_code_of(outcomes),
        virtual=document.virtual,
        phones=[summary_phone(phone.verdict) for phone in phones],
    )
    return RunResult(document, plan(*skipped), summary, phones, last_green)


def summary_phone(judged: VerdictDocument) -> SummaryPhone:
    return SummaryPhone(
        udid=judged.udid,
        alias=judged.alias,
        model=judged.model,
        product_type=judged.product_type,
        os=judged.os,
        outcome=judged.outcome,
        cause=judged.cause,
        checks=judged.checks,
    )
