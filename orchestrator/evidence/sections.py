"""The outer shape of a report: one JSON header, then a JSON body, or text, or nothing.

The header usually is the first line, but some tools print it over several; some join reports into
one file, some add text after the JSON, and any of them may be cut.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestrator.evidence.fields import Json

# Panic logs hold raw line feeds inside strings, which strict JSON forbids.
_DECODER: Final = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Sections:
    """A report taken apart; what is missing is None and `damage` says why."""

    header: Json | None
    body: Json | None  # the second JSON object
    rest: str  # everything behind the header
    damage: str | None  # why there is no header, else why there is no body; None with a body


def split(content: bytes) -> Sections:
    """Take a report apart; never raises, whatever the bytes are."""
    decoded = content.decode("utf-8", errors="replace")
    if not decoded.strip("\ufeff\0 \t\r\n"):
        return Sections(None, None, "", "empty")
    start = decoded.find("{")
    if start < 0:
        return Sections(None, None, decoded, "no JSON header")
    header, end = _object_at(decoded, start)
    if header is None:
        return Sections(None, None, decoded, _damage_of(decoded))
    rest = decoded[end:]
    return _with_body(header, rest)


def _with_body(header: Json, rest: str) -> Sections:
    stripped = rest.lstrip()
    if not stripped:
        return Sections(header, None, rest, "no body")
    body, _ = _object_at(stripped, 0)
    return Sections(header, body, rest, None if body is not None else _damage_of(stripped))


def _object_at(source: str, start: int) -> tuple[Json | None, int]:
    """Return the JSON object that starts at `start` and where it ends, or None."""
    try:
        value, end = _DECODER.raw_decode(source, start)
    except (ValueError, RecursionError):  # ValueError: also integers beyond Python's digit limit
        return None, start
    return (value, end) if isinstance(value, dict) else (None, start)


def _damage_of(source: str) -> str:
    # A cut report does not end with the bracket that closes its object.
    if not source.startswith("{"):
        return "not JSON"
    return "damaged" if source.rstrip("\0 \t\r\n").endswith("}") else "truncated"
