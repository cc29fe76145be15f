"""Draws lines over the ones drawn before, on a terminal; no alternate screen, no flicker.

A frame is one write inside a synchronized update, and only where something changed. The terminal
keeps its history, and the last frame stays when the view ends.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TextIO

from rich.cells import cell_len

from orchestrator.live.lines import text_of
from orchestrator.live.table import Terminal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.live.lines import Line, Role

_BEGIN: Final = "\x1b[?2026h\x1b[?25l"
_END: Final = "\x1b[?25h\x1b[?2026l"
_CLEAR_LINE: Final = "\x1b[2K"
_CLEAR_REST: Final = "\x1b[J"
# The terminal's own sixteen colours: they are legible on its background, whichever that is.
_COLOURS: Final[dict[Role, str]] = {
    "plain": "",
    "faint": "\x1b[2m",
    "head": "\x1b[1m",
    "good": "\x1b[32m",
    "note": "\x1b[33m",
    "bad": "\x1b[1;31m",
}


def is_wanted(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Return whether a table may be drawn: on a terminal that is not told to stay plain."""
    if environment.get("NO_COLOR") or environment.get("CI") or environment.get("TERM") == "dumb":
        return False
    return stream.isatty()


def frame(lines: Sequence[Line], rows_before: int) -> str:
    """Return what draws lines over so many rows above the cursor."""
    parts = [_BEGIN, "\r"]
    if rows_before:
        parts.append(f"\x1b[{rows_before}A")
    for line in lines:
        parts += [_CLEAR_LINE, _coloured(line), "\r\n"]
    return "".join([*parts, _CLEAR_REST, _END])


def rows_taken(lines: Sequence[Line], width: int) -> int:
    """Return how many rows lines take on a terminal that was made narrower since."""
    return sum(max(1, -(-cell_len(text_of(line)) // max(1, width))) for line in lines)


class Screen:
    """The part of a terminal that a view has.

    Args:
        stream: The terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._drawn: Sequence[Line] = ()
        self._size: tuple[int, int] | None = None

    def terminal(self) -> Terminal:
        """Return the terminal as it is now."""
        size = os.terminal_size((80, 24))
        with suppress(OSError):
            size = os.get_terminal_size(self._stream.fileno())
        encoding = (self._stream.encoding or "ascii").lower().replace("-", "")
        return Terminal(size.columns or 80, size.lines or 24, ascii_only=encoding != "utf8")

    def draw(self, lines: Sequence[Line]) -> None:
        """Replace what was drawn."""
        terminal = self.terminal()
        size = (terminal.width, terminal.height)
        if lines == self._drawn and size == self._size:
            return
        rows = min(rows_taken(self._drawn, terminal.width), terminal.height)
        text = frame(lines, rows)
        encoding = self._stream.encoding or "ascii"
        self._stream.write(text.encode(encoding, "replace").decode(encoding))
        self._stream.flush()
        self._drawn, self._size = lines, size

    def clear(self) -> None:
        """Take the view away, so that other lines can be printed."""
        if self._drawn:
            self.draw(())


def _coloured(line: Line) -> str:
    parts = []
    for span in line:
        colour = _COLOURS[span.role]
        parts.append(f"{colour}{span.text}\x1b[0m" if colour else span.text)
    return "".join(parts)
