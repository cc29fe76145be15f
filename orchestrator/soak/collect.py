"""After a launch: the journal, the phone's diagnostic reports, and the merged telemetry."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError
from orchestrator.evidence.classify import REPORT_TOLERANCE_S, classify
from orchestrator.evidence.parse import read_reports
from orchestrator.evidence.reports import CrashReport, JetsamReport, PanicReport
from orchestrator.runlog.documents import PulledReportFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.device.facts import PhoneFacts, PulledReport
    from orchestrator.device.link import PhoneLink
    from orchestrator.evidence.reports import ParsedReport
    from orchestrator.runlog.documents import LaunchWindow

JOURNAL_FOLDER: Final = "Documents/fleet"
PULL_LIMIT_S: Final = 60.0
POLL_S: Final = 1.0
VIRTUAL_GRACE_S: Final = 2.0  # beyond the delay that a virtual phone states


@dataclass(slots=True)
class ReportCollector:
    """Pulls reports that were not on the phone when the session began."""

    link: PhoneLink
    folder: Path
    files: list[PulledReportFile] = field(default_factory=list)  # all that was pulled
    ignored: int = 0  # of them, a watch's or a simulator's
    _known: set[str] = field(default_factory=set)
    _recent: list[ParsedReport] = field(default_factory=list)  # of the last pull

    async def remember_present(self, *, limit_s: float = PULL_LIMIT_S) -> None:
        """Note what the phone holds already, so that old reports are never ours."""
        deadline = Deadline.after(limit_s)
        await self.link.flush_reports(deadline=deadline)
        self._known |= await self.link.list_reports(deadline=deadline)

    @property
    def known(self) -> list[str]:
        """Keys of the reports that are not to be pulled."""
        return sorted(self._known)

    def remember(self, keys: Sequence[str]) -> None:
        """Take over what another process found present."""
        self._known |= set(keys)

    async def pull_new(self, *, limit_s: float = PULL_LIMIT_S) -> None:
        """Pull what is new since the last call."""
        deadline = Deadline.after(limit_s)
        await self.link.flush_reports(deadline=deadline)
        pulled = await self.link.pull_reports(self.folder, known=self._known, deadline=deadline)
        self._known |= {report.key for report in pulled}
        self.files += [_listed(report, self.folder) for report in pulled]
        self._recent = await anyio.to_thread.run_sync(_parsed, pulled)
        self.ignored += sum(report.header.ignored is not None for report in self._recent)

    async def pull_until_explained(
        self,
        app_name: str,
        launches: Sequence[LaunchWindow],
        clock_offsets_s: tuple[float, float],
        *,
        wait_s: float,
    ) -> None:
        """Pull until a report of this app's death arrived or the time is over.

        iOS writes reports late or never, and other processes die too: theirs end no waiting.
        """
        deadline = Deadline.after(wait_s)
        await self.pull_new()
        while not self._explains(app_name, launches, clock_offsets_s) and not deadline.passed:
            await anyio.sleep(min(POLL_S, deadline.remaining_s()))
            await self.pull_new()

    def _explains(
        self,
        app_name: str,
        launches: Sequence[LaunchWindow],
        clock_offsets_s: tuple[float, float],
    ) -> bool:
        return any(
            classify(
                report,
                app_name=app_name,
                lc_uuid=None,  # the app's own word, which the session does not read
                launches=launches,
                clock_offset_s=clock_offsets_s[0],
                clock_offset_end_s=clock_offsets_s[1],
                tolerance_s=REPORT_TOLERANCE_S,
            ).ours
            for report in self._recent
            if isinstance(report, CrashReport | JetsamReport | PanicReport)
        )


def report_wait_s(facts: PhoneFacts | None, configured_s: float) -> float:
    """Return how long a report is awaited after a death; a virtual phone states its own delay."""
    if facts is None or facts.virtual is None:
        return configured_s
    return facts.virtual.report_delay_s + VIRTUAL_GRACE_S


def _listed(report: PulledReport, folder: Path) -> PulledReportFile:
    local = Path(report.local_path)
    return PulledReportFile(
        device_path=report.device_path,
        file=str(local.relative_to(folder)) if local.is_relative_to(folder) else str(local),
        size_bytes=report.size_bytes,
    )


def _parsed(pulled: Sequence[PulledReport]) -> list[ParsedReport]:
    return [
        parsed
        for report in pulled
        for parsed in read_reports(Path(report.local_path), report.device_path)
    ]


async def pull_journal(
    link: PhoneLink, bundle_id: str, launch: str, target: Path, *, limit_s: float = PULL_LIMIT_S
) -> str | None:
    """Copy a launch's journal from the phone; return why it could not be had, or None."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        await link.pull(
            bundle_id,
            f"{JOURNAL_FOLDER}/{launch}.ndjson",
            target,
            deadline=Deadline.after(limit_s),
        )
    except DeviceError as error:
        return str(error)
    return None
