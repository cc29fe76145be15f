"""Bytes of an app's stdout and stderr to lines: bounded, and always text."""

from __future__ import annotations

from typing import Final

LINE_LIMIT_BYTES: Final = 8192  # an app that never writes a newline must not fill the host


class LineSplitter:
    """Splits a byte stream into lines.

    A line longer than `LINE_LIMIT_BYTES` comes in several pieces: nothing is lost. Bytes that are
    not UTF-8 become U+FFFD.
    """

    def __init__(self) -> None:
        self._tail = b""

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that `data` completes, without their line ends."""
        *whole, self._tail = (self._tail + data).split(b"\n")
        pieces = [piece for line in whole for piece in _cut(line)]
        if len(self._tail) > LINE_LIMIT_BYTES:
            *full, self._tail = _cut(self._tail)
            pieces += full
        return [_text(piece) for piece in pieces]

    def finish(self) -> list[str]:
        """Return what stands after the last newline, if anything, as the last line."""
        tail, self._tail = self._tail, b""
        return [_text(tail)] if tail else []


def _cut(line: bytes) -> list[bytes]:
    starts = range(0, max(1, len(line)), LINE_LIMIT_BYTES)
    return [line[start : start + LINE_LIMIT_BYTES] for start in starts]


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode(errors="replace")
