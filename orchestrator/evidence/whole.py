"""The short way through a report as iOS writes it: one header line, one whole JSON body.

The scanner of `scan` reads whatever the bytes are, member by member, in Python. Nearly all files
are whole, and a compiled decoder reads those ten times as fast. Here nothing is repaired or
guessed: what is not plainly whole is left to the scanner, and both give equal reports.
"""

from __future__ import annotations

from typing import Final

import msgspec

from orchestrator.evidence.fields import Json, count
from orchestrator.evidence.processes import KEPT, ProcessList
from orchestrator.evidence.sections import BODY_FIELDS, HEADER_FIELDS, SPEAKING, Document

LONGEST: Final = 4 << 20  # bytes; so no value is too long for the scanner either

_Raw = msgspec.Raw


class _Killed(msgspec.Struct):
    """What is kept of a process; most are alive and have no reason."""

    reason: object = msgspec.UNSET
    name: object = msgspec.UNSET
    pid: object = msgspec.UNSET
    uuid: object = msgspec.UNSET
    rpages: object = msgspec.UNSET
    states: _Raw | msgspec.UnsetType = msgspec.UNSET
    killDelta: object = msgspec.UNSET


class _Thread(msgspec.Struct):
    """A thread; the frames of those that did not crash are never decoded."""

    triggered: object = None
    frames: _Raw | msgspec.UnsetType = msgspec.UNSET


class _Image(msgspec.Struct):
    """What a frame says of its image."""

    name: object = None
    uuid: object = None
    arch: object = None


class _Lists(msgspec.Struct):
    """The long lists of a body, and what makes it another report's header."""

    processes: list[_Killed] | msgspec.UnsetType = msgspec.UNSET
    threads: list[_Thread] | msgspec.UnsetType = msgspec.UNSET
    usedImages: list[_Image] | msgspec.UnsetType = msgspec.UNSET
    bug_type: object = msgspec.UNSET


_NAMED: Final = tuple(BODY_FIELDS.difference(_Lists.__struct_fields__))
_KEPT_FIELDS: Final = tuple(BODY_FIELDS)
_BODY: Final = msgspec.defstruct(
    "_BODY", [(name, object, msgspec.UNSET) for name in _NAMED], bases=(_Lists,)
)
_HEADERS: Final = msgspec.json.Decoder(dict[str, object])
_BODIES: Final[msgspec.json.Decoder[_Lists]] = msgspec.json.Decoder(_BODY)


def whole_document(content: bytes) -> Document | None:
    """Return the one report of a file, None where the scanner must look.

    Args:
        content: The file.
    """
    head, _, rest = content.partition(b"\n")
    if len(content) > LONGEST or b'"bug_type"' not in head:
        return None
    try:
        content.decode()  # what is skipped is not looked at by the decoder
        header = _HEADERS.decode(head)
        body = _BODIES.decode(rest)
        is_whole = SPEAKING.isdisjoint(header) and body.bug_type is msgspec.UNSET
        # The scanner adds up lists that come twice.
        if body.processes is not msgspec.UNSET and content.count(b'"processes"') > 1:
            is_whole = False
        return _document(header, body) if is_whole else None
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None


def _document(header: Json, body: _Lists) -> Document:
    fields: Json = {
        name: value for name in _KEPT_FIELDS if (value := getattr(body, name)) is not msgspec.UNSET
    }
    processes = ProcessList()
    if "processes" in fields:
        for entry in fields["processes"]:  # type: ignore[attr-defined]
            if entry.reason is not msgspec.UNSET:
                processes.add(_entry(entry))
        fields["processes"] = True  # what the scanner leaves for a list
    if "threads" in fields:
        _open_backtrace(fields)
    wanted = {name: header[name] for name in header.keys() & (HEADER_FIELDS | BODY_FIELDS)}
    return Document(header=wanted, body=fields, processes=processes)


def _entry(entry: _Killed) -> Json:
    found: Json = {
        name: value for name in KEPT if (value := getattr(entry, name)) is not msgspec.UNSET
    }
    if isinstance(entry.states, _Raw):
        found["states"] = msgspec.json.decode(entry.states)
    return found


def _open_backtrace(fields: Json) -> None:
    """Decode the thread that crashed and the images that it names; the others stay empty."""
    threads: list[_Thread] = fields["threads"]  # type: ignore[assignment]
    images: list[_Image] = fields.get("usedImages", [])  # type: ignore[assignment]
    number = count(fields, "faultingThread")
    if number is None or number >= len(threads):
        number = next((n for n, thread in enumerate(threads) if thread.triggered is True), None)
    opened: list[Json] = [{}] * len(threads)
    frames: object = None
    if number is not None:
        thread = threads[number]
        if isinstance(thread.frames, _Raw):
            frames = msgspec.json.decode(thread.frames)
        opened[number] = {"triggered": thread.triggered, "frames": frames}
    fields["threads"] = opened
    if "usedImages" in fields:
        fields["usedImages"] = _named(frames, images)


def _named(frames: object, images: list[_Image]) -> list[Json]:
    wanted = {
        index
        for frame in (frames if isinstance(frames, list) else [])
        if isinstance(frame, dict) and (index := count(frame, "imageIndex")) is not None
    }
    first = next((n for n, image in enumerate(images) if image.arch), None)
    wanted |= set() if first is None else {first}
    named: list[Json] = [{}] * len(images)
    for index in wanted:
        if index < len(images):
            named[index] = msgspec.structs.asdict(images[index])
    return named
