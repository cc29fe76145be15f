"""Turns the pieces of output a phone sends into lines that can be written anywhere."""

from __future__ import annotations

from typing import Final

MAX_LINE_CHARS: Final = 8192  # a longer line is cut into several


class LineAssembler:
    """Joins pieces of one process's output into lines."""

    def __init__(self) -> None:
        self._rest = ""

    def push(self, text: str) -> list[str]:
        """Return the lines that this piece completes."""
        *lines, self._rest = (self._rest + text).split("\n")
        while len(self._rest) > MAX_LINE_CHARS:
            lines.append(self._rest[:MAX_LINE_CHARS])
            self._rest = self._rest[MAX_LINE_CHARS:]
        return [piece for line in lines for piece in _pieces(line)]

    def flush(self) -> list[str]:
        """Return what is left without a newline; the process has ended."""
        rest, self._rest = self._rest, ""
        return _pieces(rest) if rest else []


def printable(text: str) -> str:
    """Return hostile text without control characters and lone surrogates; tabs stay."""
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(char if char >= " " or char == "\t" else "\ufffd" for char in clean)


def _pieces(line: str) -> list[str]:
    text = printable(line.rstrip("\r"))
    starts = range(0, max(len(text), 1), MAX_LINE_CHARS)
    return [text[start : start + MAX_LINE_CHARS] for start in starts]
