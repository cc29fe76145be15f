"""The outer shape of a report: one JSON header, then a JSON body, or text, or nothing.

The header usually is the first line, but some tools print it over several; some join reports into
one file, some add text after the JSON, and any of them may be cut.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from orchestrator.evidence.processes import ProcessList
from orchestrator.evidence.scan import Members, Scanner
from orchestrator.evidence.source import TextSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from orchestrator.evidence.fields import Json

LONGEST_TEXT: Final = 1 << 20  # characters kept of a text body; a resource report has 300 KB

HEADER_FIELDS: Final = frozenset(
    {"app_name", "bug_type", "incident_id", "name", "os_version", "platform", "slice_uuid"}
    | {"timestamp"}
)
BODY_FIELDS: Final = frozenset(
    {"asi", "build", "captureTime", "date", "exception", "faultingThread", "incident", "osVersion"}
    | {"isNonFatal", "isSimulated", "largestProcess", "memoryStatus", "modelCode", "panicString"}
    | {"pid", "procName", "procPath", "procRole", "processes", "product", "string", "termination"}
    | {"threads", "usedImages"}
)
SPEAKING: Final = BODY_FIELDS - {"build", "pid", "product", "string"}  # only bodies have them

# What tells a crash report without a header, as older tools saved it, from any other text.
_PLAIN_CRASH: Final = re.compile(r"^(?:Incident Identifier|Exception Type):", re.MULTILINE)
_ANY_OBJECT: Final = re.compile(r"\{")
_OBJECT_ON_NEW_LINE: Final = re.compile(r"(?<=\n)\{")
_BLANK: Final = "\ufeff\0 \t\r\n"


@dataclass(slots=True)
class Document:
    """One report, taken apart."""

    header: Json | None = None
    body: Json | None = None  # what was read of it, even if it is damaged
    processes: ProcessList = field(default_factory=ProcessList)
    text: str = ""  # a body that is not JSON
    damage: str | None = None  # why header or body is not whole; None with both
    trailing_ignored: bool = False
    decode_errors: int = 0

    @property
    def whole_body(self) -> Json | None:
        """The body if nothing of it is missing."""
        return self.body if self.damage is None else None


def documents(chunks: Iterable[bytes]) -> Iterator[Document]:
    """Take a file apart into its reports, at least one; never raises, whatever the bytes are."""
    return _Splitter(TextSource(chunks)).documents()


class _Splitter:
    """Pairs headers with bodies, in the order of the file."""

    def __init__(self, source: TextSource) -> None:
        self._source = source
        self._current = Document()
        self._errors_before = 0

    def documents(self) -> Iterator[Document]:
        while True:
            yield from self._part()
            if not self._source.next_part():
                break
        yield self._finished()

    def _part(self) -> Iterator[Document]:
        while True:
            processes = ProcessList()
            wanted = HEADER_FIELDS | BODY_FIELDS
            scanner = Scanner(self._source, wanted, {"processes": processes.add})
            following = scanner.peek()
            if not following:
                return
            if following != "{":
                self._take_text()
                continue
            members = scanner.read_object()
            if not self._begins_report(members):
                self._continue(members, processes)
                continue
            if self._current.header is not None or _is_plain_crash(self._current.text):
                yield self._finished()
            self._begin(members, processes)

    def _begins_report(self, members: Members) -> bool:
        if self._current.header is None:
            return True
        has_type = "bug_type" in members.fields
        is_body = not SPEAKING.isdisjoint(members.fields)
        waits = self._current.body is None and not self._current.text
        return has_type and not (is_body and waits)

    def _begin(self, members: Members, processes: ProcessList) -> None:
        """Take a header, or a body without its header line."""
        is_body = not SPEAKING.isdisjoint(members.fields)
        self._current = Document(
            header=members.fields,
            body=members.fields if is_body else None,
            processes=processes,
            damage=members.damage,
        )

    def _continue(self, members: Members, processes: ProcessList) -> None:
        """Take a body, or ignore an object behind it."""
        current = self._current
        if current.body is not None or current.text:
            current.trailing_ignored = True
            return
        current.body, current.processes = members.fields, processes
        current.damage = members.damage

    def _take_text(self) -> None:
        """Take what is no object: a text body, a remark behind a body, or noise before a header."""
        source = self._source
        form = _ANY_OBJECT if self._current.header is None else _OBJECT_ON_NEW_LINE
        while True:
            match = form.search(source.text, source.position)
            part = source.text[source.position : match.start() if match else None]
            self._add_text(part)
            source.position += len(part)
            if match or not source.fill():
                return
            if part.endswith("\n") and source.text.startswith("{"):
                return

    def _add_text(self, part: str) -> None:
        current = self._current
        if current.body is not None:
            current.trailing_ignored = True
        elif len(current.text) < LONGEST_TEXT:
            current.text += part[:LONGEST_TEXT]

    def _finished(self) -> Document:
        """Return the current report with why it is not whole, and begin the next."""
        done, self._current = self._current, Document()
        done.decode_errors = self._source.decode_errors - self._errors_before
        self._errors_before = self._source.decode_errors
        done.damage = done.damage or _why_incomplete(done)
        return done


def _is_plain_crash(text: str) -> bool:
    # The system's viewer prints a translation before the full report, which is read instead.
    return _PLAIN_CRASH.search(text) is not None and "Full Report" not in text


def _why_incomplete(document: Document) -> str | None:
    has_text = bool(document.text.strip(_BLANK))
    if document.header is None:
        return "no JSON header" if has_text else "empty"
    if document.body is not None:
        return None
    return "not JSON" if has_text else "no body"
