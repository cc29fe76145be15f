"""Lines of spans: text with the role that gives it its colour, cut and padded by cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from rich.cells import cell_len, set_cell_size

if TYPE_CHECKING:
    from collections.abc import Sequence

Role = Literal["plain", "faint", "head", "good", "note", "bad"]
ELLIPSIS: Final = "…"


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line."""

    text: str
    role: Role = "plain"


Line = tuple[Span, ...]


def cut(text: str, cells: int, *, ascii_only: bool = False) -> str:
    """Return a text of at most so many cells of a terminal."""
    if cells <= 0:
        return ""
    if cell_len(text) <= cells:
        return text
    if cells == 1 or ascii_only:
        return set_cell_size(text, cells).rstrip()
    return set_cell_size(text, cells - 1).rstrip() + ELLIPSIS


def fitted(text: str, cells: int, *, right: bool = False, ascii_only: bool = False) -> str:
    """Return a text of exactly so many cells."""
    short = cut(text, cells, ascii_only=ascii_only)
    padding = " " * (cells - cell_len(short))
    return padding + short if right else short + padding


def within(spans: Sequence[Span], cells: int, *, ascii_only: bool = False) -> Line:
    """Return a line of at most so many cells."""
    line: list[Span] = []
    for span in spans:
        short = cut(span.text, cells, ascii_only=ascii_only)
        if short:
            line.append(Span(short, span.role))
        cells -= cell_len(short)
        if short != span.text:
            break
    return tuple(line)


def text_of(line: Line) -> str:
    """Return a line without its roles."""
    return "".join(span.text for span in line).rstrip()
