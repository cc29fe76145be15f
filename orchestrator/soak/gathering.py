"""What is taken from a phone when its app is over: journal, clock, diagnostic reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeadlineExceededError, DeviceError
from orchestrator.domain.outcome import Cause
from orchestrator.soak.collect import PULL_LIMIT_S, pull_journal, report_wait_s

if TYPE_CHECKING:
    from orchestrator.device.link import PhoneLink
    from orchestrator.runlog.documents import PlannedApp
    from orchestrator.runlog.layout import AttemptPaths
    from orchestrator.soak.collect import ReportCollector
    from orchestrator.soak.findings import SessionFindings
    from orchestrator.soak.run_directory import Remark

LIMIT_S: Final = 300.0  # of one step
HURRIED_LIMIT_S: Final = 4.0  # of one step after Ctrl-C, which must end within 20 s
FACTS_LIMIT_S: Final = 20.0
BOOT_LIMIT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Gathering:
    """Fills findings with what a phone still holds; what cannot be had is a remark."""

    link: PhoneLink
    app: PlannedApp
    paths: AttemptPaths
    collector: ReportCollector
    findings: SessionFindings
    launch: int  # number of the newest
    report_wait_s: float  # of a real phone
    hurried: bool
    remark: Remark

    async def run(self) -> None:
        """Take everything; never raises a lab error."""
        limit_s = HURRIED_LIMIT_S if self.hurried else LIMIT_S
        await self._journal(limit_s)
        if self.findings.facts is not None:
            await self._clock(min(FACTS_LIMIT_S, limit_s))
            await self._boot()
            await self._reports(limit_s)

    async def _journal(self, limit_s: float) -> None:
        """Pull the journal of every launch that answered."""
        bundle_id, missing = self.app.bundle_id, 0
        launches = self._launches()
        for number, launch in launches.items():
            target = self.paths.journal(number)
            problem = await pull_journal(self.link, bundle_id, launch, target, limit_s=limit_s)
            if problem is not None:
                missing += 1
                self.remark("journal_missing", reason=problem)
        self.findings.journal_pulled = bool(launches) and not missing

    def _launches(self) -> dict[int, str]:
        """Return the launches that answered by number; a running one has no window."""
        known = {window.number: window.launch for window in self.findings.windows}
        last = self.findings.stream.launch
        if last is not None and last not in known.values():
            known[self.launch] = last
        return {number: launch for number, launch in known.items() if launch is not None}

    async def _clock(self, limit_s: float) -> None:
        """Read the phone's clock again: it may have been set since the session began."""
        try:
            facts = await self.link.facts(deadline=Deadline.after(limit_s))
        except DeviceError as error:
            self.remark("clock_unmeasured", reason=str(error))
        else:
            self.findings.clock_at_end = facts.clock

    async def _boot(self) -> None:
        """Learn whether a phone that was lost, and answers again, had restarted.

        A restart ends every session, but so does a cable. Only the services inside a tunnel say
        which boot it is, so one session more is opened for it.
        """
        findings = self.findings
        lost = findings.cause_hint() is Cause.DEVICE_LOST and findings.clock_at_end is not None
        if self.hurried or not lost or findings.boot_session is None:
            return
        try:
            session = await self.link.developer(deadline=Deadline.after(BOOT_LIMIT_S))
            try:
                now = await session.boot_session(deadline=Deadline.after(FACTS_LIMIT_S))
            finally:
                with anyio.CancelScope(shield=True):
                    await session.aclose()
        except DeviceError as error:
            self.remark("boot_unmeasured", reason=str(error))
            return
        findings.rebooted = None if now is None else now != findings.boot_session

    async def _reports(self, limit_s: float) -> None:
        findings, collector = self.findings, self.collector
        try:
            await self._pull_reports(limit_s)
        except DeviceError as error:
            self.remark("reports_missing", reason=str(error))
        findings.reports, findings.ignored_reports = collector.files, collector.ignored
        for report in collector.files:
            self.remark("report_pulled", path=report.device_path)
        if collector.ignored:
            self.remark("reports_ignored", count=collector.ignored)

    async def _pull_reports(self, limit_s: float) -> None:
        if self.findings.died and not self.hurried:
            await self.collector.pull_until_explained(
                self.app.name,
                self.findings.windows,
                self.findings.clock_offsets_s,
                wait_s=report_wait_s(self.findings.facts, self.report_wait_s),
            )
            return
        try:
            await self.collector.pull_new(limit_s=min(limit_s, PULL_LIMIT_S))
        except DeadlineExceededError:
            if self.hurried:
                raise
            # A connection that fell silent stays so; another one may not.
            await self.collector.pull_new(limit_s=PULL_LIMIT_S)
