"""Run directories of deaths to one calibration per phone; the fold over records is pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orchestrator.domain.calibration import Calibration, CalibrationKey, Deaths, StateCost
from orchestrator.domain.errors import RunDirectoryError
from orchestrator.evidence.classify import REPORT_TOLERANCE_S, classify
from orchestrator.evidence.parse import read_reports
from orchestrator.evidence.reports import JetsamReport
from orchestrator.runlog.documents import DeviceDocument, EvidenceDocument, PlanDocument
from orchestrator.runlog.events import read_events
from orchestrator.runlog.files import read_document
from orchestrator.runlog.layout import RunPaths
from orchestrator.runlog.lines import read_lines
from orchestrator.runlog.telemetry import (
    AnyRecord,
    Handler,
    Hello,
    Load,
    MalformedRecordError,
    MemoryWarning,
    Sample,
    State,
    decode_record,
)
from orchestrator.soak.calibrating.own_kill import exit_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from orchestrator.runlog.documents import AppExit, PlannedPhone
    from orchestrator.runlog.layout import AttemptPaths


@dataclass(slots=True)
class LaunchFacts:
    """What the records of one launch say."""

    hello: Hello | None = None
    loads: list[Load] = field(default_factory=list)
    handlers: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # `origin/channel`
    warned_at_bytes: int | None = None  # at the kernel's first warning
    state: StateCost = field(default_factory=StateCost)
    _footprint: int | None = None  # before the record at hand
    _neural: int | None = None
    _state_made_at_neural: int | None = None

    @property
    def limit_bytes(self) -> int | None:
        """Footprint and what was left of the limit, read back to back."""
        if self.hello is None or self.hello.available <= 0:
            return None
        return self.hello.footprint + self.hello.available

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        match record:
            case Hello():
                self.hello = record
            case Load():
                self.loads.append(record)
            case Handler() if record.registered and record.channel not in self.handlers:
                self.handlers.append(record.channel)
            case MemoryWarning():
                self._warned(record)
            case State() if record.action == "made" and self.state.stated_bytes is None:
                before = self._footprint
                gained = None if before is None else record.footprint - before
                self.state = StateCost(record.bytes, gained)
                self._state_made_at_neural = self._neural
            case Sample():
                self._sampled(record)
            case _:
                pass
        self._footprint = getattr(record, "footprint", self._footprint)

    def _warned(self, record: MemoryWarning) -> None:
        name = f"{record.origin}/{record.channel}"
        if name not in self.warnings:
            self.warnings.append(name)
        if record.origin == "kernel" and self.warned_at_bytes is None:
            self.warned_at_bytes = record.footprint

    def _sampled(self, record: Sample) -> None:
        before, self._neural = self._state_made_at_neural, record.neural_ledger
        known = self.state.stated_bytes is not None and self.state.neural_bytes is None
        if known and before is not None and record.neural_ledger is not None:
            gained = record.neural_ledger - before
            self.state = StateCost(self.state.stated_bytes, self.state.footprint_bytes, gained)


def read_launch(lines: Iterable[bytes]) -> LaunchFacts:
    """Return what telemetry says; a line that is no record is left out."""
    facts = LaunchFacts()
    for line in lines:
        try:
            facts.observe(decode_record(line))
        except MalformedRecordError:
            continue
    return facts


@dataclass(frozen=True, slots=True)
class DeathRun:
    """One run in which every app was to die at its limit, as it is for one phone."""

    run_id: str
    phone: PlannedPhone
    device: DeviceDocument
    evidence: EvidenceDocument
    launch: LaunchFacts
    report_delays_s: tuple[float, ...]  # of JetsamEvents about the app

    @property
    def kill(self) -> AppExit | None:
        """The exit that was the kernel's doing."""
        if self.evidence.killed_by_host or self.evidence.stopped_by_host:
            return None
        return next((gone for gone in self.evidence.exits if gone.exit_code != 0), None)


def read_death_runs(roots: Sequence[Path]) -> dict[str, list[DeathRun]]:
    """Return the runs of each phone by UDID; a phone whose session never began is left out.

    Raises:
        RunDirectoryError: If a run has no plan.
    """
    found: dict[str, list[DeathRun]] = {}
    for root in roots:
        paths = RunPaths(root)
        plan = read_document(paths.plan, PlanDocument)
        for phone in plan.phones:
            run = _death_run(paths, plan, phone)
            if run is not None:
                found.setdefault(phone.udid, []).append(run)
    return found


def _death_run(paths: RunPaths, plan: PlanDocument, phone: PlannedPhone) -> DeathRun | None:
    device = paths.device(phone.directory)
    try:
        attempt = device.attempts()[-1]
        evidence = read_document(attempt.evidence, EvidenceDocument)
        described = read_document(device.device, DeviceDocument)
    except (IndexError, RunDirectoryError):
        return None
    launch = read_launch(line.content for line in read_lines(device.telemetry))
    delays = _delays(paths, plan.app.name, phone.udid, attempt, evidence, launch)
    return DeathRun(plan.run_id, phone, described, evidence, launch, tuple(delays))


def _delays(
    paths: RunPaths,
    app_name: str,
    udid: str,
    attempt: AttemptPaths,
    evidence: EvidenceDocument,
    launch: LaunchFacts,
) -> list[float]:
    """Return how long each JetsamEvent about the app took from the exit until it was pulled."""
    if not evidence.exits:
        return []
    seen_s = {
        str(event.facts.get("path")): event.at_s
        for event in read_events(paths.events)
        if event.kind == "report_pulled" and event.udid == udid
    }
    ours = []
    for file in evidence.reports:
        parsed = read_reports(attempt.reports / file.file, file.device_path)
        jetsams = [report for report in parsed if isinstance(report, JetsamReport)]
        if any(_is_ours(report, app_name, evidence, launch) for report in jetsams):
            ours.append(file.device_path)
    died_s = evidence.exits[0].at_s
    return [max(0.0, seen_s[path] - died_s) for path in ours if path in seen_s]


def _is_ours(
    report: JetsamReport, app_name: str, evidence: EvidenceDocument, launch: LaunchFacts
) -> bool:
    return classify(
        report,
        app_name=app_name,
        lc_uuid=launch.hello.lc_uuid if launch.hello else None,
        launches=evidence.launches,
        clock_offset_s=evidence.clock_offset_s or 0.0,
        clock_offset_end_s=evidence.clock_offset_end_s,
        tolerance_s=REPORT_TOLERANCE_S,
    ).ours


def calibration_of(
    runs: Sequence[DeathRun], own_kill: str | None, measured_s: float
) -> Calibration | None:
    """Return the calibration of one phone: pure. None if its app never said hello.

    Args:
        runs: Of the phone, oldest first.
        own_kill: What the host saw of a kill by us.
        measured_s: Now, Unix seconds.
    """
    told = [run for run in runs if run.launch.hello is not None]
    if not told:
        return None
    first, hello = told[0], told[0].launch.hello
    if hello is None:
        return None
    phone, limit = first.phone, first.launch.limit_bytes
    warned = next((r.launch.warned_at_bytes for r in told if r.launch.warned_at_bytes), None)
    loads = [load for run in told for load in run.launch.loads]
    return Calibration(
        key=CalibrationKey(
            phone.product_type, first.device.build, entitled=hello.entitled, virtual=phone.virtual
        ),
        udid=phone.udid,
        alias=phone.alias,
        model=phone.model,
        os=phone.os,
        measured_s=measured_s,
        stand_in=hello.stand_in,
        runs=tuple(run.run_id for run in told),
        limit_bytes=limit,
        physical_memory_bytes=hello.physical_memory_bytes,
        sysmon_memory_bytes=first.device.physical_memory_bytes,
        handlers=_distinct(name for run in told for name in run.launch.handlers),
        warnings=_distinct(name for run in told for name in run.launch.warnings),
        warnings_noticed=sum(run.evidence.warnings_noticed for run in told),
        warned_at_percent=round(100 * warned / limit, 1) if warned and limit else None,
        deaths=_deaths(told),
        own_kill=own_kill,
        cold_load_ms=next((load.ms for load in loads if load.cold), None),
        warm_load_ms=next((load.ms for load in loads if not load.cold), None),
        state=first.launch.state,
        host_peak_bytes=max(r.evidence.peak_observed_bytes or 0 for r in told) or None,
    )


def _deaths(runs: Sequence[DeathRun]) -> Deaths:
    kills = [run.kill for run in runs if run.kill is not None]
    delays = [delay for run in runs for delay in run.report_delays_s]
    return Deaths(
        count=len(kills),
        exits=_distinct(exit_words(gone.exit_code, gone.signal) for gone in kills),
        reports=len(delays),
        report_delays_s=tuple(round(delay, 1) for delay in delays),
    )


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
