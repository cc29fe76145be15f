"""The id-to-bytes table of a model: what each id adds to the text, for an app without a tokenizer.

File `tokens.table`: a header of 16 bytes, little-endian `<4s u32 version, u32 count, u32 flags>`
with the magic `FTKT`, version 1 and flags 0; then `count + 1` offsets u32 into the bytes that
follow, the first 0: id `i` is `bytes[offsets[i]:offsets[i + 1]]`. Ids that give no text (special
ones, holes) are empty. One id may be a part of a character: the reader assembles UTF-8.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from orchestrator.mlpackage.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

TABLE_FILE: Final = "tokens.table"
_HEADER: Final = struct.Struct("<4sIII")
_MAGIC: Final = b"FTKT"
_VERSION: Final = 1


def encode_table(pieces: Sequence[bytes]) -> bytes:
    """Return the file of a table, one piece per id from 0."""
    offsets = [0]
    for piece in pieces:
        offsets.append(offsets[-1] + len(piece))
    head = _HEADER.pack(_MAGIC, _VERSION, len(pieces), 0)
    return head + struct.pack(f"<{len(offsets)}I", *offsets) + b"".join(pieces)


def decode_table(content: bytes) -> list[bytes]:
    """Return the piece of every id.

    Raises:
        FormatError: If the content is no table, or is cut.
    """
    if len(content) < _HEADER.size:
        raise FormatError(f"{len(content)} bytes, too short for a token table")
    magic, version, count, _ = _HEADER.unpack_from(content)
    if magic != _MAGIC or version != _VERSION:
        raise FormatError("not a token table of version 1")
    begin = _HEADER.size + 4 * (count + 1)
    if begin > len(content):
        raise FormatError(f"a table of {count} ids in {len(content)} bytes")
    offsets = struct.unpack_from(f"<{count + 1}I", content, _HEADER.size)
    text = content[begin:]
    rising = all(first <= second for first, second in pairwise(offsets))
    if offsets[0] != 0 or offsets[-1] != len(text) or not rising:
        raise FormatError("the offsets of the token table are inconsistent")
    return [text[first:second] for first, second in pairwise(offsets)]
