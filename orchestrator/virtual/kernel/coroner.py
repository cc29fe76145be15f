"""What is known after a death, and what a phone leaves behind: log lines, a report, an event."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from orchestrator.virtual.kernel.causes import Termination
from orchestrator.virtual.kernel.crash import Crashed, crash_report, crash_stem, is_crash
from orchestrator.virtual.kernel.image import lc_uuid, path_on_phone
from orchestrator.virtual.kernel.jetsam import (
    BACKGROUND_PRIORITY,
    FOREGROUND_PRIORITY,
    PAGE_BYTES,
    KillReason,
    Row,
    app_states,
    jetsam_report,
    jetsam_stem,
    system_row,
)
from orchestrator.virtual.kernel.reports import DailyQuota, ReportFolder
from orchestrator.virtual.kernel.values import LogLine, MemoryEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from orchestrator.virtual.kernel.clock import PhoneClock
    from orchestrator.virtual.kernel.process import AppProcess
    from orchestrator.virtual.kernel.reports import ReportPolicy
    from orchestrator.virtual.kernel.residents import SystemProcess
    from orchestrator.virtual.kernel.values import InstalledApp, KernelFacts

NO_UUID: Final = "00000000-0000-0000-0000-000000000000"  # the executable could not be read


@dataclass(frozen=True, slots=True)
class Kill:
    """A kill by the kernel, noted when it was done."""

    reason: KillReason
    footprint_bytes: int  # host bytes, the highest seen
    cpu_time_s: float
    lag_s: float = 0.0
    others: tuple[SystemProcess, ...] = ()  # killed for the same shortage, before the app


class Coroner:
    """Writes what iOS would about the death of an app.

    A SIGKILL that somebody else sent, an exit, and a signal that is no fault leave nothing.
    """

    def __init__(
        self,
        facts: KernelFacts,
        log: Callable[[LogLine], None],
        policy: ReportPolicy,
        clock: PhoneClock,
        survivors: Callable[[], list[Row]],
    ) -> None:
        self._facts, self._log, self._clock, self._survivors = facts, log, clock, survivors
        self.reports = ReportFolder(facts.crash_folder, log, policy)
        self._quota = DailyQuota(policy)

    def killed(self, process: AppProcess, kill: Kill) -> MemoryEvent:
        """Log and report a kill by the kernel; return it with what was really seen."""
        seen_bytes = kill.footprint_bytes * self._facts.memory_scale
        # A phone dies exactly at its limit; the sampler is a little late, and only the event says.
        by_limit = kill.reason is KillReason.PER_PROCESS_LIMIT
        stated_bytes = self._facts.limit_bytes if by_limit else seen_bytes
        self._log_kill(process.pid, process.app.name, kill.reason, stated_bytes)
        victim = app_row(process, stated_bytes, kill.cpu_time_s, kill.reason)
        return MemoryEvent(
            "kill",
            process.pid,
            process.app.name,
            footprint_bytes=seen_bytes,
            limit_bytes=self._facts.limit_bytes,
            lag_s=kill.lag_s,
            report=self._jetsam([victim], kill.others, by_limit=by_limit),
        )

    def reclaimed(self, victims: Sequence[SystemProcess]) -> str | None:
        """Log and report kills of iOS's own processes; return the report's file name."""
        return self._jetsam([], victims, by_limit=False)

    def died(self, process: AppProcess) -> None:
        """Report a death that was not the kernel's doing, if it was a crash."""
        cause = process.termination or process.signal
        if cause is None or (isinstance(cause, int) and not is_crash(cause)):
            return
        app, when = process.app, self._clock.now()
        if isinstance(cause, Termination):
            text = f"[app<{app.bundle_id}>:{process.pid}] Terminating with {cause.explanation}"
            self._log(LogLine(33, "runningboardd", "RunningBoard", text))
        crashed = Crashed(
            app,
            process.pid,
            uuid_of(app),
            path_on_phone(app, self._facts.udid),
            started=datetime.fromtimestamp(process.started_s, UTC).astimezone(),
            frontmost=process.frontmost,
            cause=cause,
            last_line=process.last_line,
        )
        text = crash_report(self._facts, crashed, incident=_incident(), when=when)
        self.reports.save(f"309({app.bundle_id})", crash_stem(app.name, when), text)

    def _jetsam(
        self, apps: list[Row], system: Sequence[SystemProcess], *, by_limit: bool
    ) -> str | None:
        when, now_s = self._clock.now(), time.time()
        for process in system:
            size = process.pages * PAGE_BYTES
            self._log_kill(process.pid, process.name, KillReason.VM_PAGE_SHORTAGE, size)
        if by_limit and not self._quota.take(when.date()):
            return None
        shortage = KillReason.VM_PAGE_SHORTAGE
        rows = [*apps, *(system_row(each, self._facts, now_s, shortage) for each in system)]
        dead = {row.pid for row in rows}
        rows += [row for row in self._survivors() if row.pid not in dead]
        text = jetsam_report(self._facts, rows, incident=_incident(), when=when)
        kind = "298(298_LOW_PRIORITY)" if by_limit else "298(298_HIGH_PRIORITY)"
        return self.reports.save(kind, jetsam_stem(when), text)

    def _log_kill(self, pid: int, name: str, reason: KillReason, size_bytes: int) -> None:
        text = (
            f"memorystatus: killing_specific_process pid {pid} [{name}]"
            f" ({reason} 100) {size_bytes // 1024}KB"
        )
        self._log(LogLine(0, "kernel", "kernel", text))


def app_row(
    process: AppProcess,
    footprint_bytes: int,
    cpu_time_s: float,
    reason: KillReason | None = None,
) -> Row:
    """Return the row of an app, dead or alive; the footprint is in phone bytes."""
    return Row(
        process.app.name,
        process.pid,
        uuid_of(process.app),
        footprint_bytes // PAGE_BYTES,
        FOREGROUND_PRIORITY if process.frontmost else BACKGROUND_PRIORITY,
        app_states(frontmost=process.frontmost, suspended=process.stopped),
        age_s=max(0.0, time.time() - process.started_s),
        cpu_time_s=cpu_time_s,
        reason=reason,
    )


def uuid_of(app: InstalledApp) -> str:
    """Return the LC_UUID of an app's executable."""
    try:
        return lc_uuid(app.executable)
    except OSError:
        return NO_UUID


def _incident() -> str:
    return str(uuid4()).upper()
