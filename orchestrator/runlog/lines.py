"""Reading append-only NDJSON files, a torn last line included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_LINE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file."""

    number: int  # from 1
    content: bytes  # newline included where there is one
    torn: bool  # no newline, or cut at MAX_LINE_BYTES


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a file; a missing file has none. Memory does not grow with the file."""
    if not path.exists():
        return
    with path.open("rb") as file:
        number = 0
        while content := file.readline(MAX_LINE_BYTES):
            number += 1
            yield Line(number, content, torn=not content.endswith(b"\n"))
