"""How a phone's soak ended, as separate facts from separate sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.evidence.classified import ClassifiedReport
    from orchestrator.runlog.documents import AppExit, EvidenceDocument
    from orchestrator.verdict.tally import Tally

_CLOCK_SLACK_S: Final = 30.0  # the phone counts its boot back from a clock that is corrected


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The facts that a cause is joined from. None is "not known", never "no"."""

    has_records: bool
    bye_reason: str | None
    exit: AppExit | None  # of the last launch's process
    alive_at_end: bool | None
    rebooted: bool
    stopped_by_host: bool
    killed_by_host: bool
    journal_pulled: bool
    reports: tuple[ClassifiedReport, ...]  # about the app under test, within a launch
    last_footprint_bytes: int | None
    limit_bytes: int | None
    foreground: bool | None
    thermal: str | None
    last_breadcrumb: str | None
    cause_hint: str | None
    error: str | None
    run_finished: bool
    interrupted_by: str | None
    is_part_missing: bool = False  # a launch that the scenario asks for left no records
    other_reports: int = 0  # that were pulled and are about something else

    @property
    def footprint_over_limit(self) -> float | None:
        """Last footprint divided by the limit."""
        if self.last_footprint_bytes is None or not self.limit_bytes:
            return None
        return self.last_footprint_bytes / self.limit_bytes

    @property
    def ended_by_us(self) -> bool:
        """Whether the host asked for the end, or brought it about."""
        return self.stopped_by_host or self.killed_by_host

    @property
    def looked_at(self) -> str:
        """What was asked for the cause of an end that nothing explains, in words."""
        exit_event = "none" if self.exit is None else f"code {self.exit.exit_code}"
        if self.exit is not None and self.exit.signal:
            exit_event = f"signal {self.exit.signal}"
        alive = {None: "not asked", True: "yes", False: "no"}[self.alive_at_end]
        front = {None: "unknown", True: "foreground", False: "background"}[self.foreground]
        return (
            f"Looked at: reports (none of this app, {self.other_reports} others), exit event"
            f" ({exit_event}), process alive ({alive}), reboot (none seen), scene ({front}),"
            f" thermal state ({self.thermal or 'unknown'}), last breadcrumb"
            f" ({self.last_breadcrumb or 'none'})"
        )


def ending_of(
    tally: Tally,
    evidence: EvidenceDocument | None,
    reports: Sequence[ClassifiedReport],
    *,
    run_finished: bool,
    interrupted_by: str | None,
    launches_due: int = 1,
) -> Ending:
    """Return the facts of a phone whose records were all read."""
    own = [report for report in reports if report.ours and report.in_window]
    exited = _last_exit(tally, evidence)
    alive = evidence.alive_at_end if evidence else None
    return Ending(
        has_records=tally.records > 0,
        bye_reason=tally.bye.reason if tally.bye and not _fell_silent(tally, evidence) else None,
        exit=exited,
        alive_at_end=alive,
        rebooted=bool(evidence and evidence.rebooted) or _boot_time_moved(tally),
        stopped_by_host=bool(evidence and evidence.stopped_by_host),
        killed_by_host=bool(evidence and evidence.killed_by_host),
        journal_pulled=bool(evidence and evidence.journal_pulled),
        reports=tuple(sorted(own, key=_latest_first)),
        last_footprint_bytes=tally.last_footprint_bytes,
        limit_bytes=tally.limit_bytes,
        foreground=tally.foreground,
        thermal=tally.thermal,
        last_breadcrumb=tally.last_breadcrumb,
        cause_hint=evidence.cause_hint if evidence else None,
        error=evidence.error if evidence else None,
        run_finished=run_finished,
        interrupted_by=interrupted_by,
        is_part_missing=tally.launches < launches_due,
        other_reports=len(reports) - len(own),
    )


def _latest_first(report: ClassifiedReport) -> tuple[int, float]:
    """Order reports by launch, the last launch first: it is the one whose end is asked for."""
    return -(report.launch or 0), -(report.at_s or 0.0)


def _fell_silent(tally: Tally, evidence: EvidenceDocument | None) -> bool:
    """Return whether a launch left no record: the farewell on record is an earlier one's."""
    return evidence is not None and 0 < tally.launches < len(evidence.launches)


def _boot_time_moved(tally: Tally) -> bool:
    """Return whether two launches name different boots; a clock that was set moves it a little."""
    if tally.boot_times_s is None:
        return False
    first_s, last_s = tally.boot_times_s
    return abs(last_s - first_s) > _CLOCK_SLACK_S


def _last_exit(tally: Tally, evidence: EvidenceDocument | None) -> AppExit | None:
    """Return the exit event of the last launch's process."""
    if evidence is None:
        return None
    pids = {launch.pid for launch in evidence.launches[-1:]}
    if not pids and tally.hello is not None:
        pids = {tally.hello.pid}
    exits = [event for event in evidence.exits if event.pid in pids]
    return exits[-1] if exits else None
