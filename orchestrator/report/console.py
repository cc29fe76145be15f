"""What the app printed, cut to head and tail: one says what ran, the other what broke."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

CONSOLE_LIMIT_BYTES: Final = 64 * 1024
_NOTE_ROOM_BYTES: Final = 128


def console_text(path: Path) -> str | None:
    """Return the console's text, None where there is none. Memory does not grow with the file."""
    try:
        size_bytes = path.stat().st_size
        if size_bytes <= CONSOLE_LIMIT_BYTES:
            return path.read_bytes().decode(errors="replace") or None
        half_bytes = (CONSOLE_LIMIT_BYTES - _NOTE_ROOM_BYTES) // 2
        with path.open("rb") as file:
            head = file.read(half_bytes)
            file.seek(-half_bytes, 2)
            tail = file.read(half_bytes)
    except OSError:
        return None
    left_out = size_bytes - len(head) - len(tail)
    return _joined(head.decode(errors="replace"), tail.decode(errors="replace"), left_out)


def within(text: str, limit_bytes: int) -> str:
    """Return a text of at most so many bytes of UTF-8, with a note where its middle is cut."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= limit_bytes:
        return text
    half_bytes = (limit_bytes - _NOTE_ROOM_BYTES) // 2
    head = encoded[:half_bytes].decode(errors="ignore")
    tail = encoded[-half_bytes:].decode(errors="ignore")
    return _joined(head, tail, len(encoded) - 2 * half_bytes)


def _joined(head: str, tail: str, left_out: int) -> str:
    return f"{head}\n… {left_out:,} bytes are left out here; the raw files have them …\n{tail}"
