"""Whose a report is, and which launch it ends: uuid first, else cut name and time together.

A report that merely lies on the phone proves nothing: it may be last week's, another app's, or
this app's with another process killed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from orchestrator.evidence.classified import ClassifiedReport, ReportKind
from orchestrator.evidence.describe import describe
from orchestrator.evidence.reports import (
    CrashReport,
    ExcResourceReport,
    JetsamReport,
    OtherReport,
    PanicReport,
    ParsedReport,
    Unparsed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

# The kernel keeps 15 or 31 bytes of a name and the closing zero; shorter names are whole.
_SHORTEST_CUT_BYTES: Final = 15

# A launch is noted once its pid is known, so the app may have died a moment before; a longer
# span would let in the report of the soak before this one.
_EARLY_S: Final = 5.0

_KINDS: Final[dict[type[ParsedReport], ReportKind]] = {
    JetsamReport: "jetsam",
    CrashReport: "crash",
    ExcResourceReport: "exc_resource",
    PanicReport: "panic",
    OtherReport: "other",
    Unparsed: "unparsed",
}


class LaunchWindow(Protocol):
    """One launch of the app by the host's clock; the run log's document is one."""

    @property
    def number(self) -> int:
        """Ordinal from 1."""

    @property
    def pid(self) -> int:
        """Process id on the phone."""

    @property
    def started_s(self) -> float:
        """Unix seconds."""

    @property
    def ended_s(self) -> float | None:
        """Unix seconds, None where the end was not seen."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """The process that a report is about, as far as it says."""

    name: str | None
    uuid: str | None
    pid: int | None
    reason: str | None
    foreground: bool | None = None
    footprint_bytes: int | None = None


def classify(
    report: ParsedReport,
    *,
    app_name: str,
    lc_uuid: str | None,
    launches: Sequence[LaunchWindow],
    clock_offset_s: float,
    tolerance_s: float,
) -> ClassifiedReport:
    """Return a report tied to the app under test, or known not to be about it.

    Args:
        report: From `parse_report`.
        app_name: CFBundleExecutable.
        lc_uuid: LC_UUID of the app's binary from its `hello`, None where it has none.
        launches: Launches of this attempt.
        clock_offset_s: Phone's wall clock minus the host's.
        tolerance_s: Added after a launch: reports are written seconds after a kill.
    """
    phone_s = report.header.time.unix_s if report.header.time else None
    at_s = None if phone_s is None else phone_s - clock_offset_s
    around = [launch for launch in launches if _holds(launch, at_s, tolerance_s)]
    pids = {launch.pid for launch in around}
    subjects = _subjects(report)
    ours = [s for s in subjects if _is_ours(s, app_name, lc_uuid, pids, in_window=bool(around))]
    ours.sort(key=lambda subject: subject.pid not in pids)  # stable: a known pid comes first
    subject = ours[0] if ours else next(iter(subjects), _Subject(None, None, None, None))
    return ClassifiedReport(
        file=report.header.file,
        kind=_kind(report),
        ours=bool(ours) or (isinstance(report, PanicReport) and bool(around)),
        in_window=bool(around),
        launch=_launch(subject.pid, around),
        reason=subject.reason,
        foreground=subject.foreground,
        footprint_bytes=subject.footprint_bytes,
        pid=subject.pid,
        at_s=at_s,
        summary=describe(report, subject.name, subject.reason, subject.footprint_bytes),
    )


def names_match(reported: str | None, app_name: str) -> bool:
    """Return whether two process names are one, either of them cut by the kernel."""
    if not reported or not app_name:
        return False
    one, other = sorted(
        (reported.encode(errors="replace"), app_name.encode(errors="replace")), key=len
    )
    return one == other or (len(one) >= _SHORTEST_CUT_BYTES and other.startswith(one))


def _is_ours(
    subject: _Subject, app_name: str, lc_uuid: str | None, pids: set[int], *, in_window: bool
) -> bool:
    wanted, found = _plain_uuid(lc_uuid), _plain_uuid(subject.uuid)
    if wanted and wanted == found:
        return True
    if not in_window or not names_match(subject.name, app_name):
        return False
    if subject.pid is not None:
        return subject.pid in pids  # a process of this name that nobody launched is another run's
    return not (wanted and found)  # the same name in another build is somebody else


def _plain_uuid(uuid: str | None) -> str:
    return (uuid or "").replace("-", "").casefold()


def _holds(launch: LaunchWindow, at_s: float | None, tolerance_s: float) -> bool:
    if at_s is None:
        return False
    ended_s = math.inf if launch.ended_s is None else launch.ended_s
    early_s = min(tolerance_s, _EARLY_S)
    return launch.started_s - early_s <= at_s <= ended_s + tolerance_s


def _launch(pid: int | None, around: Sequence[LaunchWindow]) -> int | None:
    if pid is not None:
        around = [launch for launch in around if launch.pid == pid]
    return around[0].number if len(around) == 1 else None


def _subjects(report: ParsedReport) -> list[_Subject]:
    header = report.header
    match report:
        case JetsamReport():
            return [
                _Subject(v.name, v.uuid, v.pid, v.reason, v.foreground, v.footprint_bytes)
                for v in report.victims
            ]
        case CrashReport():
            return [
                _Subject(header.name, header.uuid, report.pid, report.reason, report.foreground)
            ]
        case ExcResourceReport():
            return [_Subject(header.name, header.uuid, report.pid, report.resource)]
        case PanicReport():
            return []
        case OtherReport():
            return [_Subject(header.name, header.uuid, None, report.name)]
        case _:
            return [_Subject(header.name, header.uuid, None, report.reason)]


def _kind(report: ParsedReport) -> ReportKind:
    if isinstance(report, CrashReport) and report.watchdog:
        return "other" if report.stopped_too_slowly else "watchdog"
    return _KINDS[type(report)]
