"""From a hostile line to a record that the checks can compute with, or to nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.runlog.telemetry import MalformedRecordError, decode_record

if TYPE_CHECKING:
    from orchestrator.runlog.telemetry import AnyRecord

_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")
_MAX_INT: Final = (1 << 63) - 1
_UNSIGNED: Final = "seed"  # the one number that uses all 64 bits
_LONGEST_TEXT: Final = 400


def read_record(line: bytes) -> AnyRecord | None:
    """Return the record of a line, None where it holds none.

    JSON allows integers of any length; those that no phone writes would overflow a float or the
    verdict's own file, so a line with one is no record.
    """
    try:
        record = decode_record(line)
    except MalformedRecordError:
        return None
    return record if not _LONG_NUMBER.search(line) or _fits(line) else None


def _fits(line: bytes) -> bool:
    """Return whether all integers of a line fit 64 signed bits."""
    try:
        waiting: list[object] = [msgspec.json.decode(line)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False  # damaged in a field that no record has
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(item for key, item in value.items() if key != _UNSIGNED)
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, int) and abs(value) > _MAX_INT:
            return False
    return True


def plain(text: str) -> str:
    """Return a text that may hold a phone's words as one printable line of bounded length."""
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in text[:_LONGEST_TEXT])
    return f"{shown}\u2026" if len(text) > _LONGEST_TEXT else shown
