"""Crash reports: makes the phone move them into reach, and copies them."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pymobiledevice3.exceptions import AfcFileNotFoundError, ProtocolError
from pymobiledevice3.services.afc import AfcService

from orchestrator.device.facts import PulledReport, report_key
from orchestrator.device.pmd3 import afc
from orchestrator.device.report_paths import local_paths

if TYPE_CHECKING:
    from pathlib import Path

    from pymobiledevice3.lockdown import UsbmuxLockdownClient

    from orchestrator.device.facts import RemoteFile

MOVER: Final = "com.apple.crashreportmover"
COPIER: Final = "com.apple.crashreportcopymobile"
_DONE: Final = b"ping\0"
# A sysdiagnose lies beside the reports and has hundreds of megabytes; no report comes near this.
MAX_REPORT_BYTES: Final = 64 * 1024**2
# Of all that one run takes from a phone; a night of crashes has some hundred small ones.
MAX_REPORTS: Final = 2_000
MAX_TOTAL_BYTES: Final = 1024**3


class TooMuchError(Exception):
    """A phone offers more new reports than any healthy one."""

    def __str__(self) -> str:
        return f"more than {MAX_REPORTS} new reports, or {MAX_TOTAL_BYTES} bytes of them"


@dataclass(slots=True)
class Allowance:
    """What a phone's reports may still take of the host's disk."""

    reports: int = MAX_REPORTS
    total_bytes: int = MAX_TOTAL_BYTES

    def take(self, size_bytes: int) -> None:
        """Count a report that was copied.

        Raises:
            TooMuchError: If it was too much.
        """
        self.reports -= 1
        self.total_bytes -= size_bytes
        if self.reports < 0 or self.total_bytes < 0:
            raise TooMuchError


async def flush(client: UsbmuxLockdownClient) -> None:
    """Wait until the phone has moved its pending reports."""
    async with aclosing(await client.start_lockdown_service(MOVER)) as service:
        answer = await service.recvall(len(_DONE))
    if answer != _DONE:
        raise ProtocolError("the crash report mover did not answer with its ping")


async def listing(client: UsbmuxLockdownClient) -> set[str]:
    """Return the keys of all reports on the phone, without copying any."""
    async with afc.closing(AfcService(client, service_name=COPIER)) as files:
        found = await afc.walk(files, "/")
    return {report_key(report.path, report.size_bytes) for report in found}


async def pull(
    client: UsbmuxLockdownClient, into: Path, known: set[str], allowance: Allowance
) -> list[PulledReport]:
    """Copy what is new; a report that vanishes meanwhile is left out.

    Raises:
        TooMuchError: If the phone offers more than it is allowed.
    """
    async with afc.closing(AfcService(client, service_name=COPIER)) as files:
        found = await afc.walk(files, "/")
        places = local_paths([report.path for report in found])
        pulled: list[PulledReport] = []
        for report in found:
            if _is_new(report, known):
                try:
                    local = into / places[report.path]
                    pulled.append(await _copied(files, report, local, allowance))
                except AfcFileNotFoundError:
                    continue
    return pulled


def _is_new(report: RemoteFile, known: set[str]) -> bool:
    fits = report.size_bytes <= MAX_REPORT_BYTES
    return fits and report_key(report.path, report.size_bytes) not in known


async def _copied(
    files: AfcService, report: RemoteFile, local: Path, allowance: Allowance
) -> PulledReport:
    allowance.take(await afc.fetch(files, report.path, local, limit_bytes=MAX_REPORT_BYTES))
    return PulledReport(report.path, str(local), report.size_bytes, report.mtime_s)
