"""Bytes of a diagnostic report to a typed report: chosen by content, and without an exception.

The suffix says nothing: `.ips`, `.ips.synced`, `.ips.ca.synced` and `.crash` hold the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.evidence import crash
from orchestrator.evidence.fields import text
from orchestrator.evidence.jetsam import parse_jetsam
from orchestrator.evidence.reports import (
    CRASH_TYPES,
    EXC_RESOURCE_TYPES,
    JETSAM_TYPES,
    PANIC_TYPES,
    CrashReport,
    ExcResourceReport,
    OtherReport,
    PanicReport,
    ParsedReport,
    ReportHeader,
    Unparsed,
)
from orchestrator.evidence.sections import Sections, split
from orchestrator.evidence.times import first_certain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.evidence.fields import Json

_BODY_KEYS = frozenset({"processes", "exception", "panicString", "threads"})


def parse_report(content: bytes, file: str) -> ParsedReport:
    """Return a report as a typed value; never raises, whatever the bytes are.

    Args:
        content: The raw file; keep it, the typed value holds only what is judged.
        file: What the caller calls the file; it is passed through.
    """
    sections = split(content)
    if sections.header is None:
        return Unparsed(_header(file, {}, {}), sections.damage or "no JSON header")
    body = sections.body
    if body is None and _BODY_KEYS & sections.header.keys():
        body = sections.header  # a body without its header line
    header = _header(file, sections.header, body or {})
    return _typed(header, sections, body)


def without_copies(reports: Iterable[ParsedReport]) -> list[ParsedReport]:
    """Return one report per incident: iOS keeps copies in `Retired/` and as `.synced`.

    A readable copy wins over one that is not; reports without an incident are all kept.
    """
    kept: dict[str, ParsedReport] = {}
    for report in reports:
        key = report.header.incident or f"file {report.header.file}"
        if key not in kept or isinstance(kept[key], Unparsed):
            kept[key] = report
    return list(kept.values())


def _header(file: str, header: Json, body: Json) -> ReportHeader:
    return ReportHeader(
        file=file,
        bug_type=_bug_type(header) or _bug_type(body),
        # The body's time has the fraction that the header's may lack.
        time=first_certain(body.get("captureTime"), body.get("date"), header.get("timestamp")),
        incident=text(header, "incident_id") or text(body, "incident"),
        name=text(header, "name", "app_name") or text(body, "procName"),
        uuid=text(header, "slice_uuid"),
    )


def _bug_type(source: Json) -> str | None:
    value = source.get("bug_type")
    whole = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if whole and abs(int(str(value))) < 10**9 else text(source, "bug_type")


def _typed(header: ReportHeader, sections: Sections, body: Json | None) -> ParsedReport:
    bug_type = header.bug_type
    if bug_type is None:
        return Unparsed(header, "no bug type")
    if bug_type in JETSAM_TYPES:
        return parse_jetsam(header, body) if body else Unparsed(header, _why(sections))
    if bug_type in CRASH_TYPES:
        return _crash(header, sections, body)
    if bug_type in EXC_RESOURCE_TYPES:
        return _exc_resource(header, sections, body)
    if bug_type in PANIC_TYPES:
        return PanicReport(header, _panic_line(body or {}))
    return OtherReport(header, bug_type)


def _crash(header: ReportHeader, sections: Sections, body: Json | None) -> CrashReport | Unparsed:
    if body:
        return crash.parse_crash(header, body)
    if header.bug_type == "109" and sections.rest.strip():
        return crash.parse_text_crash(header, sections.rest)
    return Unparsed(header, _why(sections))


def _exc_resource(
    header: ReportHeader, sections: Sections, body: Json | None
) -> ExcResourceReport | Unparsed:
    if body:
        return crash.parse_exc_resource(header, body)
    if header.bug_type == "185" and sections.rest.strip():
        return crash.parse_text_exc_resource(header, sections.rest)
    return Unparsed(header, _why(sections))


def _why(sections: Sections) -> str:
    return sections.damage or "empty body"


def _panic_line(body: Json) -> str | None:
    # A panic whose body is damaged still says that the phone restarted.
    words = text(body, "panicString", "string")
    return words.strip().partition("\n")[0] if words else None
