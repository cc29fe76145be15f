"""The list of `fleet crashlog parse`: one flat object per report. Its keys are relied on outside.

A key that a kind cannot answer is None. Texts of the phone are cut, never cleaned: whoever prints
them must escape them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.domain.iphone import MIB
from orchestrator.evidence.blame import IDLE_REASONS, OWN_REASONS, SYSTEM_REASONS, blame
from orchestrator.evidence.classify import names_match
from orchestrator.evidence.kinds import RESTARTS, kind_of
from orchestrator.evidence.reports import (
    CrashReport,
    ExcResourceReport,
    JetsamReport,
    PanicReport,
    Unparsed,
    UsageReport,
)

if TYPE_CHECKING:
    from orchestrator.evidence.reports import JetsamVictim, ParsedReport
    from orchestrator.evidence.times import ReportTime

Row = dict[str, object]

_LONGEST_TEXT: Final = 2048
_EventReport = CrashReport | ExcResourceReport | UsageReport


@dataclass(frozen=True, slots=True)
class Interest:
    """What the reader asks about; None is "any"."""

    app: str | None = None  # CFBundleExecutable, may be cut
    pid: int | None = None
    product: str | None = None  # ProductType

    @property
    def names_an_app(self) -> bool:
        """Whether there is an app to ask about."""
        return self.app is not None or self.pid is not None

    def is_app(self, name: str | None, pid: int | None) -> bool:
        """Return whether a process is the app asked about."""
        if self.app is not None and not names_match(name, self.app):
            return False
        if self.pid is None:
            return self.app is not None
        return pid == self.pid or (pid is None and self.app is not None)


def row_of(report: ParsedReport, interest: Interest) -> Row:
    """Return one report as an object of the list."""
    header = report.header
    error = report.reason if isinstance(report, Unparsed) else None
    if isinstance(report, PanicReport):
        error = report.damage
    kind = kind_of(report)
    why = _why_ignored(report, interest)
    row: Row = {
        "file": header.file,
        "kind": kind,
        "bug_type": _cut(header.bug_type),
        "incident": _cut(header.incident),
        "utc": utc_text(header.time),
        "utc_naive": bool(header.time and header.time.naive),
        "product": _cut(header.product),
        "parsed": error is None,
        "ignored": why is not None,
        "why": why,
        "error": error,
        "decode_errors": header.notes.decode_errors,
        "trailing_ignored": header.notes.trailing_ignored,
    }
    return row | (_jetsam(report, interest) if kind == "jetsam" else _event(report, interest))


def utc_text(time: ReportTime | None) -> str | None:
    """Return `YYYY-MM-DDTHH:MM:SS[.ffffff]Z`, six digits or none."""
    return None if time is None else time.utc.replace(tzinfo=None).isoformat() + "Z"


def _why_ignored(report: ParsedReport, interest: Interest) -> str | None:
    product = report.header.product
    if report.header.ignored is not None:
        return report.header.ignored
    if interest.product is None or product is None or product == interest.product:
        return None
    return f"a report of another phone, {_cut(product)}"


def _jetsam(report: ParsedReport, interest: Interest) -> Row:
    if not isinstance(report, JetsamReport):
        return dict.fromkeys(_JETSAM_KEYS)
    victims = report.victims
    ours = [v for v in victims if interest.is_app(v.name, v.pid)]
    told = next(iter(ours or victims), None)
    page_bytes = report.page_size_bytes
    return {
        "victims": report.victim_count,
        "idle_exit": sum(victim.reason in IDLE_REASONS for victim in victims),
        **_victim(told),
        "page_size": page_bytes,
        "page_size_assumed": page_bytes if report.page_size_assumed else None,
        "first_killed": _cut(victims[0].name) if victims else None,
        "largest": _cut(report.largest_process),
        "app_killed": bool(ours) if interest.names_an_app else None,
        "blame": _blame(report, told) if told and (ours or not interest.names_an_app) else None,
    }


def _victim(victim: JetsamVictim | None) -> Row:
    if victim is None:
        return dict.fromkeys(_VICTIM_KEYS)
    bytes_used = victim.footprint_bytes
    return {
        "victim": _cut(victim.name),
        "pid": victim.pid,
        "reason": _cut(victim.reason),
        "reason_known": victim.reason in OWN_REASONS | SYSTEM_REASONS,
        "rpages": victim.resident_pages,
        "footprint_mib": None if bytes_used is None else bytes_used / MIB,
        "foreground": victim.foreground,
    }


def _blame(report: JetsamReport, victim: JetsamVictim) -> str:
    before = report.victims[: report.victims.index(victim)]
    return blame(victim, before, report.header.product)


def _event(report: ParsedReport, interest: Interest) -> Row:
    row: Row = dict.fromkeys(_EVENT_KEYS)
    row["process"] = _cut(report.header.name)
    row["device_rebooted"] = row["infra"] = kind_of(report) in RESTARTS
    if isinstance(report, PanicReport):
        return row | {"message": _cut(report.first_line)}
    if not isinstance(report, _EventReport):
        return row
    row |= {"pid": report.pid, "message": _cut(report.message), "fatal": report.fatal}
    if interest.names_an_app and (report.fatal or isinstance(report, CrashReport)):
        row["app_killed"] = report.fatal and interest.is_app(report.header.name, report.pid)
    match report:
        case CrashReport():
            return row | _crash(report)
        case ExcResourceReport():
            return row | {"exception": "EXC_RESOURCE", "limit_mb": report.limit_mib}
        case UsageReport():
            return row | {"event": _cut(report.event)}


def _crash(report: CrashReport) -> Row:
    return {
        "exception": _cut(report.exception),
        "signal": _cut(report.signal),
        "code": None if report.code is None else f"{report.code:#x}",
        "event": _cut(report.watchdog_event),
        "thermal": _cut(report.thermal_state),
        "thermal_level": report.thermal_level,
        "foreground": report.foreground,
    }


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:_LONGEST_TEXT]


_VICTIM_KEYS: Final = (
    *("victim", "pid", "reason", "reason_known", "rpages"),
    *("footprint_mib", "foreground"),
)
_JETSAM_KEYS: Final = (
    *("victims", "idle_exit", *_VICTIM_KEYS, "page_size", "page_size_assumed"),
    *("first_killed", "largest", "app_killed", "blame"),
)
_EVENT_KEYS: Final = (
    *("process", "pid", "exception", "signal", "code", "message", "event", "thermal"),
    *("thermal_level", "foreground", "fatal", "limit_mb", "device_rebooted", "infra", "app_killed"),
)
