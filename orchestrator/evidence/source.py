"""The text of a report file in pieces: decoded as it is read, parted where a new report begins.

A file may have 50 MB; no more than a few chunks of it are ever in memory.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CHUNK_BYTES: Final = 1 << 18
# A report that does not end by then reads as cut: it is none that iOS wrote.
LONGEST_FILE_BYTES: Final = 1 << 28

# A header fills one line and names its type. Joined files have several; where one begins, the
# report before it is over, complete or cut.
_LONGEST_HEADER: Final = 16_384
_OBJECT_LINE: Final = re.compile(rf'(?<=\n)\{{[ \t]*"[^\n]{{0,{_LONGEST_HEADER}}}(?=\n)')
_UTF16_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_REPLACED: Final = "\ufffd"
_WRITTEN_REPLACED: Final = _REPLACED.encode()


class TextSource:
    """A window on the text; the reader moves `position` and asks for more with `fill`."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.text = ""
        self.position = 0
        self.decode_errors = 0  # byte sequences that are not text, so far
        self._pieces = self._parted(self._decoded(chunks))
        self._next_part: str | None = None

    def fill(self) -> bool:
        """Drop what is behind `position` and append more; False at the end of this part."""
        if self._next_part is not None:
            return False
        piece, starts_part = next(self._pieces, ("", False))
        if starts_part:
            self._next_part = piece
            return False
        self.text = self.text[self.position :] + piece
        self.position = 0
        return bool(piece)

    def next_part(self) -> bool:
        """Go on to the part that begins with the next header line; False at the end."""
        if self._next_part is None:
            return False
        self.text, self.position, self._next_part = self._next_part, 0, None
        return True

    def _decoded(self, chunks: Iterable[bytes]) -> Iterator[str]:
        decoder: codecs.IncrementalDecoder | None = None
        for chunk in chunks:
            decoder = decoder or _decoder_for(chunk)
            text = decoder.decode(chunk)
            self._count_errors(text, chunk)
            yield text
        if decoder is not None:
            rest = decoder.decode(b"", True)
            self._count_errors(rest, b"")
            yield rest

    def _count_errors(self, text: str, chunk: bytes) -> None:
        found = text.count(_REPLACED)
        self.decode_errors += max(0, found - chunk.count(_WRITTEN_REPLACED)) if found else 0

    def _parted(self, texts: Iterable[str]) -> Iterator[tuple[str, bool]]:
        held = ""
        for text in texts:
            whole = held + text
            # The last line may be a header that is not complete yet.
            last = whole.rfind("\n")
            held = whole[last:] if last >= 0 and len(whole) - last <= _LONGEST_HEADER else ""
            yield from _parts(whole[: len(whole) - len(held)])
        yield from _parts(f"{held}\n" if held else "")


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    begin, starts_part = 0, False
    for match in _OBJECT_LINE.finditer(text):
        if not _is_header(match[0]):
            continue
        if match.start() > begin:
            yield text[begin : match.start()], starts_part
        begin, starts_part = match.start(), True
    if begin < len(text):
        yield text[begin:], starts_part


def _is_header(line: str) -> bool:
    return '"bug_type"' in line and line.rstrip().endswith("}")


def _decoder_for(first: bytes) -> codecs.IncrementalDecoder:
    encoding = "utf-16" if first[:2] in _UTF16_MARKS else "utf-8"
    return codecs.getincrementaldecoder(encoding)("replace")
