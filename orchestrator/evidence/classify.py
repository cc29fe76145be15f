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
    UsageReport,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

# The kernel keeps 16 or 32 bytes of a name, in some places with the closing zero among them.
_CUT_BYTES: Final = (15, 16, 31, 32)

# Between a kill and the time its report carries lie seconds, rarely a minute.
REPORT_TOLERANCE_S: Final = 60.0

# A launch is noted once its pid is known, so the app may have died a moment before; a longer
# span would let in the report of the soak before this one.
_EARLY_S: Final = 5.0

_KINDS: Final[dict[type[ParsedReport], ReportKind]] = {
    JetsamReport: "jetsam",
    CrashReport: "crash",
    ExcResourceReport: "exc_resource",
    PanicReport: "panic",
    UsageReport: "other",
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
    clock_offset_end_s: float | None = None,
) -> ClassifiedReport:
    """Return a report tied to the app under test, or known not to be about it.

    It is about the app if all of this holds: the uuid is equal, or where one of the two is missing
    the name, cut or not; the time lies within a launch; the pid, where there is one, is that of a
    launch then.

    Args:
        report: From `parse_report`.
        app_name: CFBundleExecutable.
        lc_uuid: LC_UUID of the app's binary from its `hello`, None where it has none.
        launches: Launches of this attempt.
        clock_offset_s: Phone's wall clock minus the host's, when the session began.
        tolerance_s: Added after a launch: reports are written seconds after a kill.
        clock_offset_end_s: The same at its end; phones set their clock whenever they find time.
    """
    at_end_s = clock_offset_s if clock_offset_end_s is None else clock_offset_end_s
    offsets_s = (clock_offset_s, at_end_s)
    at_s, around = _when(report, launches, tolerance_s, offsets_s)
    subjects = _subjects(report)
    ours = (
        []
        if report.header.ignored
        else [subject for subject in subjects if _is_ours(subject, app_name, lc_uuid, around)]
    )
    subject = ours[0] if ours else next(iter(subjects), _Subject(None, None, None, None))
    panicked = isinstance(report, PanicReport) and not report.header.ignored
    return ClassifiedReport(
        file=report.header.file,
        kind=_kind(report),
        ours=bool(ours) or (panicked and bool(around)),
        in_window=bool(around),
        launch=_launch(subject.pid, around),
        reason=subject.reason,
        foreground=subject.foreground,
        footprint_bytes=subject.footprint_bytes,
        pid=subject.pid,
        at_s=at_s,
        summary=describe(report, subject.name, subject.reason, subject.footprint_bytes),
        thermal_kill=isinstance(report, CrashReport) and report.thermal,
        fatal=_fatal(report),
        ignored=report.header.ignored,
    )


def names_match(reported: str | None, app_name: str) -> bool:
    """Return whether two process names are one, either of them cut by the kernel."""
    # A cut within a character leaves half of it, which was replaced when it was decoded.
    one, other = (reported or "").rstrip("\ufffd"), app_name.rstrip("\ufffd")
    if not one or not other:
        return False
    return one == other or one in _cuts(other) or other in _cuts(one)


def _cuts(name: str) -> set[str]:
    encoded = name.encode(errors="replace")
    return {encoded[:length].decode(errors="ignore") for length in _CUT_BYTES}


def _is_ours(
    subject: _Subject, app_name: str, lc_uuid: str | None, around: Sequence[LaunchWindow]
) -> bool:
    wanted, found = _plain_uuid(lc_uuid), _plain_uuid(subject.uuid)
    same = wanted == found if wanted and found else names_match(subject.name, app_name)
    # A process of this name that nobody launched is another run's.
    launched = subject.pid is None or any(launch.pid == subject.pid for launch in around)
    return same and launched and bool(around)


def _when(
    report: ParsedReport,
    launches: Sequence[LaunchWindow],
    tolerance_s: float,
    offsets_s: Sequence[float],
) -> tuple[float | None, list[LaunchWindow]]:
    """Return the time by the host's clock, and the launches that hold it.

    Between two offsets that differ the phone set its clock, before the report or after it.
    """
    phone_s = report.header.time.unix_s if report.header.time else None
    if phone_s is None:
        return None, []
    for offset_s in offsets_s:
        at_s = phone_s - offset_s
        around = [launch for launch in launches if _holds(launch, at_s, tolerance_s)]
        if around:
            return at_s, around
    return phone_s - offsets_s[0], []


def _plain_uuid(uuid: str | None) -> str:
    return (uuid or "").replace("-", "").casefold()


def _holds(launch: LaunchWindow, at_s: float, tolerance_s: float) -> bool:
    ended_s = math.inf if launch.ended_s is None else launch.ended_s
    early_s = min(tolerance_s, _EARLY_S)
    return launch.started_s - early_s <= at_s <= ended_s + tolerance_s


def _launch(pid: int | None, around: Sequence[LaunchWindow]) -> int | None:
    if pid is not None:
        around = [launch for launch in around if launch.pid == pid]
    return around[0].number if len(around) == 1 else None


def _subjects(report: ParsedReport) -> list[_Subject]:
    header = report.header
    if isinstance(report, JetsamReport):
        return [
            _Subject(v.name, v.uuid, v.pid, v.reason, v.foreground, v.footprint_bytes)
            for v in report.victims
        ]
    if isinstance(report, PanicReport):
        return []
    pid = None if isinstance(report, OtherReport | Unparsed) else report.pid
    foreground = report.foreground if isinstance(report, CrashReport) else None
    return [_Subject(header.name, header.uuid, pid, _reason(report), foreground)]


def _reason(
    report: CrashReport | ExcResourceReport | UsageReport | OtherReport | Unparsed,
) -> str | None:
    match report:
        case ExcResourceReport():
            return report.resource
        case UsageReport() | OtherReport():
            return report.name
        case _:
            return report.reason


def _kind(report: ParsedReport) -> ReportKind:
    if isinstance(report, CrashReport) and (report.stopped_too_slowly or not report.fatal):
        return "other"
    if isinstance(report, CrashReport) and report.watchdog:
        return "watchdog"
    if isinstance(report, UsageReport) and report.fatal:
        return "crash"
    return _KINDS[type(report)]


def _fatal(report: ParsedReport) -> bool | None:
    match report:
        case JetsamReport():
            return bool(report.victims)
        case CrashReport() | ExcResourceReport() | UsageReport():
            return report.fatal
        case _:
            return None
