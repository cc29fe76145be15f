"""What is known after a death, and what a phone leaves behind: log lines, a report, an event."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from orchestrator.virtual.kernel.crash import Crashed, crash_report, crash_stem, is_crash
from orchestrator.virtual.kernel.image import lc_uuid, path_on_phone
from orchestrator.virtual.kernel.jetsam import KillReason, Victim, jetsam_report, jetsam_stem
from orchestrator.virtual.kernel.reports import DailyQuota, ReportFolder
from orchestrator.virtual.kernel.values import LogLine, MemoryEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.virtual.kernel.process import AppProcess
    from orchestrator.virtual.kernel.values import InstalledApp, KernelFacts

NO_UUID: Final = "00000000-0000-0000-0000-000000000000"  # the executable could not be read


@dataclass(frozen=True, slots=True)
class Kill:
    """A kill by the kernel, noted when it was done."""

    reason: KillReason
    footprint_bytes: int  # host bytes, the highest seen
    cpu_time_s: float
    lag_s: float = 0.0


class Coroner:
    """Writes what iOS would about the death of an app.

    A SIGKILL that somebody else sent, an exit, and a signal that is no fault leave nothing.
    """

    def __init__(
        self, facts: KernelFacts, log: Callable[[LogLine], None], limit_reports_per_day: int
    ) -> None:
        self._facts, self._log = facts, log
        self._reports = ReportFolder(facts.crash_folder, log)
        self._quota = DailyQuota(limit_reports_per_day)

    def killed(self, process: AppProcess, kill: Kill) -> MemoryEvent:
        """Log and report a kill by the kernel; return it with what was really seen."""
        seen_bytes = kill.footprint_bytes * self._facts.memory_scale
        # A phone dies exactly at its limit; the sampler is a little late, and only the event says.
        by_limit = kill.reason is KillReason.PER_PROCESS_LIMIT
        stated_bytes = self._facts.limit_bytes if by_limit else seen_bytes
        text = (
            f"memorystatus: killing_specific_process pid {process.pid} [{process.app.name}]"
            f" ({kill.reason} 100) {stated_bytes // 1024}KB"
        )
        self._log(LogLine(0, "kernel", "kernel", text))
        report = self._jetsam(process, kill, stated_bytes)
        return MemoryEvent(
            "kill",
            process.pid,
            process.app.name,
            footprint_bytes=seen_bytes,
            limit_bytes=self._facts.limit_bytes,
            lag_s=kill.lag_s,
            report=report,
        )

    def died(self, process: AppProcess) -> None:
        """Report a death that was not the kernel's doing, if it was a crash."""
        if process.signal is None or not is_crash(process.signal):
            return
        app, when = process.app, _now()
        crashed = Crashed(
            app,
            process.pid,
            _uuid_of(app),
            path_on_phone(app, self._facts.udid),
            started=datetime.fromtimestamp(process.started_s, UTC).astimezone(),
            frontmost=process.frontmost,
            signal=process.signal,
            last_line=process.last_line,
        )
        text = crash_report(self._facts, crashed, incident=_incident(), when=when)
        self._reports.save(f"309({app.bundle_id})", crash_stem(app.name, when), text)

    def _jetsam(self, process: AppProcess, kill: Kill, footprint_bytes: int) -> str | None:
        when = _now()
        by_limit = kill.reason is KillReason.PER_PROCESS_LIMIT
        if by_limit and not self._quota.take(when.date()):
            return None
        victim = Victim(
            process.app.name,
            process.pid,
            _uuid_of(process.app),
            age_s=max(0.0, when.timestamp() - process.started_s),
            cpu_time_s=kill.cpu_time_s,
            frontmost=process.frontmost,
            suspended=process.stopped,
        )
        text = jetsam_report(
            self._facts,
            victim,
            reason=kill.reason,
            footprint_bytes=footprint_bytes,
            incident=_incident(),
            when=when,
        )
        kind = "298(298_LOW_PRIORITY)" if by_limit else "298(298_HIGH_PRIORITY)"
        return self._reports.save(kind, jetsam_stem(when), text)


def _now() -> datetime:
    """Return the time with the host's offset: a virtual phone lives in its time zone."""
    return datetime.now(UTC).astimezone()


def _incident() -> str:
    return str(uuid4()).upper()


def _uuid_of(app: InstalledApp) -> str:
    try:
        return lc_uuid(app.executable)
    except OSError:
        return NO_UUID
