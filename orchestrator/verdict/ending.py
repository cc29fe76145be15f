"""How a phone's soak ended, as separate facts from separate sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.evidence.classified import ClassifiedReport
    from orchestrator.runlog.documents import AppExit, EvidenceDocument
    from orchestrator.verdict.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The facts that a cause is joined from. None is "not known", never "no"."""

    has_records: bool
    bye_reason: str | None
    exit: AppExit | None  # of the last launch's process
    alive_at_end: bool | None
    rebooted: bool
    stopped_by_host: bool
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

    @property
    def footprint_over_limit(self) -> float | None:
        """Last footprint divided by the limit."""
        if self.last_footprint_bytes is None or not self.limit_bytes:
            return None
        return self.last_footprint_bytes / self.limit_bytes


def ending_of(
    tally: Tally,
    evidence: EvidenceDocument | None,
    reports: Sequence[ClassifiedReport],
    *,
    run_finished: bool,
    interrupted_by: str | None,
) -> Ending:
    """Return the facts of a phone whose records were all read."""
    return Ending(
        has_records=tally.records > 0,
        bye_reason=tally.bye.reason if tally.bye else None,
        exit=_last_exit(tally, evidence),
        alive_at_end=evidence.alive_at_end if evidence else None,
        rebooted=bool(evidence and evidence.rebooted),
        stopped_by_host=bool(evidence and evidence.stopped_by_host),
        journal_pulled=bool(evidence and evidence.journal_pulled),
        reports=tuple(report for report in reports if report.ours and report.in_window),
        last_footprint_bytes=tally.last_footprint_bytes,
        limit_bytes=tally.limit_bytes,
        foreground=tally.foreground,
        thermal=tally.thermal,
        last_breadcrumb=tally.last_breadcrumb,
        cause_hint=evidence.cause_hint if evidence else None,
        error=evidence.error if evidence else None,
        run_finished=run_finished,
        interrupted_by=interrupted_by,
    )


def _last_exit(tally: Tally, evidence: EvidenceDocument | None) -> AppExit | None:
    """Return the exit event of the last launch's process."""
    if evidence is None:
        return None
    pids = {launch.pid for launch in evidence.launches[-1:]}
    if not pids and tally.hello is not None:
        pids = {tally.hello.pid}
    exits = [event for event in evidence.exits if event.pid in pids]
    return exits[-1] if exits else None
