"""A run directory that has its verdicts to the entry that history keeps of it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final

from orchestrator.domain.errors import RunDirectoryError
from orchestrator.history.entry import CheckResult, PhoneEntry, RunEntry, Stamps
from orchestrator.history.measuring import TelemetryMeasures, measure
from orchestrator.runlog.documents import (
    CheckDocument,
    DeviceDocument,
    PlanDocument,
    PlannedPhone,
    RunDocument,
    SummaryDocument,
    VerdictDocument,
)
from orchestrator.runlog.files import read_document
from orchestrator.runlog.layout import RunPaths
from orchestrator.runlog.lines import read_lines

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.runlog.layout import DevicePaths

_UNKNOWN: Final = "unknown"
_HASH_DIGITS: Final = 12


def read_entry(root: Path) -> RunEntry:
    """Return the entry of a run.

    Raises:
        RunDirectoryError: If this is no run directory, or its verdicts were never made.
    """
    paths = RunPaths(root)
    run = read_document(paths.run, RunDocument)
    if not paths.summary_json.exists():
        raise RunDirectoryError(f"{root} has no summary.json", remedy="`fleet report RUN` makes it")
    summary = read_document(paths.summary_json, SummaryDocument)
    plan = read_document(paths.plan, PlanDocument) if paths.plan.exists() else None
    phones = plan.phones if plan else []
    return RunEntry(
        run_id=run.run_id,
        started_s=run.started_s,
        outcome=summary.outcome,
        exit_code=summary.exit_code,
        folder=str(root.resolve()),
        phones=tuple(_phone(paths.device(p.directory), p, plan) for p in phones if plan),
    )


def _phone(paths: DevicePaths, planned: PlannedPhone, plan: PlanDocument) -> PhoneEntry:
    verdict = read_document(paths.verdict, VerdictDocument)
    measures = measure(line.content for line in read_lines(paths.telemetry))
    hello = measures.hello
    return PhoneEntry(
        udid=verdict.udid,
        alias=verdict.alias,
        os=verdict.os,
        app_build=hello.build if hello else _UNKNOWN,
        stamps=_stamps(paths, planned, plan, verdict, measures),
        outcome=verdict.outcome,
        cause=verdict.cause,
        measures=measures.numbers(),
        checks=tuple(_check(check) for check in verdict.checks),
        app_sha256=plan.app.package_sha256,
        app_commit=plan.app.commit or _UNKNOWN,
        host=planned.host or "",
    )


def _stamps(
    paths: DevicePaths,
    planned: PlannedPhone,
    plan: PlanDocument,
    verdict: VerdictDocument,
    measures: TelemetryMeasures,
) -> Stamps:
    hello, load, first = measures.hello, measures.load, measures.first_sample
    return Stamps(
        model=verdict.model,
        os_build=_os_build(paths, planned),
        model_digest=load.digest[:_HASH_DIGITS] if load else _UNKNOWN,
        thermal_start=first.thermal if first else _UNKNOWN,
        charging=_yes_no(first.charging if first else None),
        low_power=_yes_no(first.low_power if first else None),
        engine=hello.engine if hello else _UNKNOWN,
        entitled=_yes_no(hello.entitled if hello else None),
        scenario=scenario_stamp(plan.scenario),
        app="stand-in" if verdict.stand_in else plan.app.kind,
        virtual=_yes_no(verdict.virtual),
    )


def scenario_stamp(scenario: dict[str, object]) -> str:
    """Return a scenario's name with a short hash of all it holds but the seed."""
    rest = {key: value for key, value in scenario.items() if key != "seed"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    return f"{scenario.get('name', _UNKNOWN)} {digest[:_HASH_DIGITS]}"


def _os_build(paths: DevicePaths, planned: PlannedPhone) -> str:
    try:
        return read_document(paths.device, DeviceDocument).build
    except RunDirectoryError:
        return planned.build


def _yes_no(value: bool | None) -> str:
    if value is None:
        return _UNKNOWN
    return "yes" if value else "no"


def _check(check: CheckDocument) -> CheckResult:
    value = None if isinstance(check.value, str) or check.value is None else float(check.value)
    return CheckResult(check.id, check.result, value, check.unit)
