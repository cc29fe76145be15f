"""After a launch: the journal, the phone's diagnostic reports, and the merged telemetry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError
from orchestrator.evidence.parse import parse_report
from orchestrator.evidence.reports import CrashReport, JetsamReport
from orchestrator.runlog.documents import PulledReportFile

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.device.link import PhoneLink

JOURNAL_FOLDER: Final = "Documents/fleet"
PULL_LIMIT_S: Final = 60.0
POLL_S: Final = 1.0


@dataclass(slots=True)
class ReportCollector:
    """Pulls reports that were not on the phone when the session began."""

    link: PhoneLink
    folder: Path
    known: set[str]

    async def remember_present(self, scratch: Path, *, limit_s: float = PULL_LIMIT_S) -> None:
        """Note what the phone holds already, so that old reports are never ours."""
        deadline = Deadline.after(limit_s)
        await self.link.flush_reports(deadline=deadline)
        pulled = await self.link.pull_reports(scratch, known=self.known, deadline=deadline)
        self.known |= {report.key for report in pulled}

    async def pull_new(self, *, limit_s: float = PULL_LIMIT_S) -> list[PulledReportFile]:
        """Pull what is new since the last call."""
        deadline = Deadline.after(limit_s)
        await self.link.flush_reports(deadline=deadline)
        pulled = await self.link.pull_reports(self.folder, known=self.known, deadline=deadline)
        self.known |= {report.key for report in pulled}
        return [
            PulledReportFile(
                device_path=report.device_path,
                file=report.local_path,
                size_bytes=report.size_bytes,
            )
            for report in pulled
        ]

    async def pull_until_explained(self, wait_s: float) -> list[PulledReportFile]:
        """Pull until a death report arrived or the time is over; iOS writes them late or never."""
        deadline = Deadline.after(wait_s)
        reports = await self.pull_new()
        while not self._explains(reports) and not deadline.passed:
            await anyio.sleep(min(POLL_S, deadline.remaining_s()))
            reports += await self.pull_new()
        return reports

    def _explains(self, reports: list[PulledReportFile]) -> bool:
        return any(
            isinstance(
                parse_report((self.folder / report.file).read_bytes(), report.file),
                CrashReport | JetsamReport,
            )
            for report in reports
        )


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
