"""One plain sentence per report; texts of the phone are shortened and made printable."""

from __future__ import annotations

from typing import Final

from orchestrator.evidence.reports import (
    CrashReport,
    ExcResourceReport,
    JetsamReport,
    OtherReport,
    PanicReport,
    ParsedReport,
    UsageReport,
)

_MIB: Final = 1024**2
_LONGEST: Final = 160


def describe(
    report: ParsedReport, name: str | None, reason: str | None, footprint_bytes: int | None
) -> str:
    """Return what a report says of the process `name`, in one sentence."""
    who = printable(name or "a process")
    match report:
        case JetsamReport():
            sentence = _jetsam(report, who, reason, footprint_bytes)
        case CrashReport():
            sentence = _crash(report, who)
        case ExcResourceReport():
            sentence = f"{who} passed a resource limit: {report.message or 'no details'}"
        case UsageReport():
            end = "; it was ended for it" if report.fatal else ""
            sentence = (
                f"{who} overused a resource ({report.name}){end}: {report.message or 'no details'}"
            )
        case PanicReport():
            sentence = f"the phone restarted: {report.first_line or 'no panic text'}"
        case OtherReport():
            sentence = f"{report.name} report about {who}, which ends no app"
        case _:
            kind = report.header.bug_type or "unknown type"
            sentence = f"unreadable report ({kind}) about {who}: {report.reason}"
    return printable(sentence)


def printable(text: str) -> str:
    """Return a text on one line without control characters, at most 160 characters long."""
    clean = "".join(character if character.isprintable() else " " for character in text[:1024])
    line = " ".join(clean.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _jetsam(report: JetsamReport, who: str, reason: str | None, footprint_bytes: int | None) -> str:
    if not report.victims:
        return "a jetsam event that killed nothing"
    size = "" if footprint_bytes is None else f" at {footprint_bytes / _MIB:.0f} MiB"
    more = report.victim_count - 1
    others = f", and {more} more" if more else ""
    return f"{who} was killed by jetsam{size}: {reason}{others}"


def _crash(report: CrashReport, who: str) -> str:
    if report.stopped_too_slowly:
        return f"{who} did not quit in time when it was told to"
    said = f": {report.message}" if report.message else ""
    return f"{who} ended by {report.reason or 'an unnamed cause'}{said}"
