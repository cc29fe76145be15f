"""Bytes of a diagnostic report to a typed report: chosen by content, and without an exception.

The suffix says nothing: `.ips`, `.ips.synced`, `.ips.ca.synced` and `.crash` hold the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from orchestrator.evidence import crash
from orchestrator.evidence.fields import text
from orchestrator.evidence.jetsam import parse_jetsam
from orchestrator.evidence.origin import product_of, why_ignored
from orchestrator.evidence.reports import (
    CRASH_TYPES,
    EXC_RESOURCE_TYPES,
    JETSAM_TYPES,
    PANIC_TYPES,
    USAGE_TYPES,
    OtherReport,
    PanicReport,
    ParsedReport,
    ReadingNotes,
    ReportHeader,
    Unparsed,
)
from orchestrator.evidence.scan import DAMAGED, TRUNCATED
from orchestrator.evidence.sections import Document, documents
from orchestrator.evidence.source import CHUNK_BYTES, LONGEST_FILE_BYTES
from orchestrator.evidence.times import first_certain
from orchestrator.evidence.usage import parse_usage, product_in_text
from orchestrator.evidence.whole import LONGEST, whole_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from orchestrator.evidence.fields import Json

# Fields of a crash report that has no header, one a line.
_PLAIN_FIELD: Final = re.compile(
    r"^(Incident Identifier|Process|Date/Time|Hardware Model|OS Version|Path):"
    r"[ \t]*(.{1,512}?)[ \t\r]{0,8}$",
    re.MULTILINE,
)
_RESTART_LINE: Final = re.compile(r"^(?:panic\(|Boot faults:).{1,512}", re.MULTILINE)
_PLAIN_TYPE: Final = "109"  # the same text, with a header before it


def parse_report(content: bytes, file: str) -> ParsedReport:
    """Return a file's first report as a typed value; never raises, whatever the bytes are.

    Args:
        content: The raw file; keep it, the typed value holds only what is judged.
        file: What the caller calls the file; it is passed through.
    """
    return next(_typed_whole(content, file))


def parse_reports(content: bytes, file: str) -> list[ParsedReport]:
    """Return all reports of a file, at least one; never raises."""
    return list(_typed_whole(content, file))


def read_reports(path: Path, file: str) -> Iterator[ParsedReport]:
    """Yield all reports of a file on disk, at least one, reading a long one in chunks.

    Only the file system's refusal is left to say: it becomes an unreadable report, too.
    """
    try:
        with path.open("rb") as opened:
            content = opened.read(LONGEST + 1)
        if len(content) <= LONGEST:
            yield from _typed_whole(content, file)
        else:
            del content
            yield from _typed_all(_chunks(path), file)
    except OSError as error:
        header = ReportHeader(file, None, None, None, None, None)
        yield Unparsed(header, f"unreadable: {error.strerror or error}")


def without_copies(reports: Iterable[ParsedReport]) -> list[ParsedReport]:
    """Return one report per incident: iOS keeps copies in `Retired/` and as `.synced`.

    A readable copy wins over one that is not; reports without an incident are all kept.
    """
    kept: dict[object, ParsedReport] = {}
    for number, report in enumerate(reports):
        key: object = incident_key(report) or number
        if key not in kept or isinstance(kept[key], Unparsed):
            kept[key] = report
    return list(kept.values())


def incident_key(report: ParsedReport) -> str | None:
    """Return what copies of one report share; None where it has no usable incident."""
    incident = (report.header.incident or "").strip().casefold()
    return incident if incident.strip("0-") else None


def _chunks(path: Path) -> Iterator[bytes]:
    left = LONGEST_FILE_BYTES
    with path.open("rb") as file:
        while left > 0 and (chunk := file.read(min(CHUNK_BYTES, left))):
            left -= len(chunk)
            yield chunk


def _typed_whole(content: bytes, file: str) -> Iterator[ParsedReport]:
    document = whole_document(content)
    if document is None:
        yield from _typed_all([content], file)
    else:
        yield _typed(_header(file, document), document)


def _typed_all(chunks: Iterable[bytes], file: str) -> Iterator[ParsedReport]:
    return (_typed(_header(file, document), document) for document in documents(chunks))


def _header(file: str, document: Document) -> ReportHeader:
    header, body = document.header, document.body or {}
    if header is None:
        header = _plain_header(document.text)
    return ReportHeader(
        file=file,
        bug_type=_bug_type(header) or _bug_type(body),
        # The body's time has the fraction that the header's may lack.
        time=first_certain(body.get("captureTime"), body.get("date"), header.get("timestamp")),
        incident=text(header, "incident_id") or text(body, "incident"),
        name=text(header, "name", "app_name") or text(body, "procName"),
        uuid=text(header, "slice_uuid"),
        product=product_of(body) or text(header, "product") or product_in_text(document.text),
        ignored=why_ignored(header, body, file),
        notes=ReadingNotes(document.decode_errors, document.trailing_ignored),
    )


def _plain_header(body: str) -> Json:
    """Return what a crash report without a header says, under the names that headers use."""
    fields = dict(_PLAIN_FIELD.findall(body[:8192]))
    if not fields:
        return {}
    return {
        "bug_type": _PLAIN_TYPE,
        "timestamp": fields.get("Date/Time"),
        "incident_id": fields.get("Incident Identifier"),
        "name": fields.get("Process", "").partition(" [")[0],
        "os_version": fields.get("OS Version"),
        "product": fields.get("Hardware Model"),
        "procPath": fields.get("Path"),
    }


def _bug_type(source: Json) -> str | None:
    value = source.get("bug_type")
    whole = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if whole and abs(int(str(value))) < 10**9 else text(source, "bug_type")


def _typed(header: ReportHeader, document: Document) -> ParsedReport:
    if header.bug_type is None:
        is_whole = document.header is not None and document.damage not in (TRUNCATED, DAMAGED)
        return Unparsed(header, "no bug type" if is_whole else document.damage or "no bug type")
    reader = _READERS.get(header.bug_type)
    return reader(header, document) if reader else OtherReport(header, header.bug_type)


def _jetsam(header: ReportHeader, document: Document) -> ParsedReport:
    body = document.whole_body
    return parse_jetsam(header, body, document.processes) if body else _unparsed(header, document)


def _crash(header: ReportHeader, document: Document) -> ParsedReport:
    if body := document.whole_body:
        return crash.parse_crash(header, body)
    if header.bug_type == _PLAIN_TYPE and document.text.strip():
        return crash.parse_text_crash(header, document.text)
    return _unparsed(header, document)


def _exc_resource(header: ReportHeader, document: Document) -> ParsedReport:
    if body := document.whole_body:
        return crash.parse_exc_resource(header, body)
    if header.bug_type == "185" and document.text.strip():
        return crash.parse_text_exc_resource(header, document.text)
    return _unparsed(header, document)


def _usage(header: ReportHeader, document: Document) -> ParsedReport:
    if document.whole_body is not None or document.text.strip():
        return parse_usage(header, document.text)
    return _unparsed(header, document)


def _panic(header: ReportHeader, document: Document) -> ParsedReport:
    # A panic whose body is damaged still says that the phone restarted.
    words = text(document.body or {}, "panicString", "string")
    if words is None and document.text.strip():
        stated = _RESTART_LINE.search(document.text)
        return PanicReport(header, stated[0] if stated else document.text.split("\n", 1)[0])
    first_line = words.strip().partition("\n")[0] if words else None
    return PanicReport(header, first_line, document.damage)


def _unparsed(header: ReportHeader, document: Document) -> Unparsed:
    return Unparsed(header, document.damage or "empty body")


_READERS: Final[dict[str, Callable[[ReportHeader, Document], ParsedReport]]] = {
    **dict.fromkeys(JETSAM_TYPES, _jetsam),
    **dict.fromkeys(CRASH_TYPES, _crash),
    **dict.fromkeys(EXC_RESOURCE_TYPES, _exc_resource),
    **dict.fromkeys(USAGE_TYPES, _usage),
    **dict.fromkeys(PANIC_TYPES, _panic),
}
