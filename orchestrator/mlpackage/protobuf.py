"""The protobuf wire format, as far as model specifications need it.

Decoding is by field number, without generated classes: the caller knows the schema. A hostile file
cannot make it slow or large: every length is checked against the bytes that are there, nesting is
the caller's own, and one reader visits a bounded number of fields.

Source: protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from orchestrator.mlpackage.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

# A message as it lies in its parent: a view of a large one, so that nesting copies nothing.
Message = bytes | memoryview

FIELD_LIMIT: Final = 1_500_000  # a package of 1.1 B parameters with two functions has 113,000
RANK_LIMIT: Final = 16

_COPIED_BYTES: Final = 4096  # below it bytes are faster than a view

_MAX_SHIFT: Final = 63
_FIXED_BYTES: Final = {1: 8, 5: 4}


class WireReader:
    """Walks messages and counts what it visits, over all messages of one file."""

    def __init__(self, field_limit: int = FIELD_LIMIT) -> None:
        self._left = field_limit

    def fields(self, message: Message) -> Iterator[tuple[int, int | Message]]:
        """Yield `(field number, value)`: an int for a varint, a message else.

        Raises:
            FormatError: If the message is cut, malformed, or the reader visited too many fields.
        """
        position, end = 0, len(message)
        while position < end:
            self._left -= 1
            if self._left < 0:
                raise FormatError("more fields than any model has")
            key = message[position]
            position += 1
            if key >= 0x80:
                key, position = _rest_of_varint(message, position, key)
            wire_type = key & 7
            if wire_type in _FIXED_BYTES:
                size = _FIXED_BYTES[wire_type]
            elif wire_type in (0, 2):
                size, position = varint(message, position)
                if wire_type == 0:
                    yield key >> 3, size
                    continue
            else:
                raise FormatError(f"wire type {wire_type} at byte {position}")
            if size > end - position:
                raise FormatError(f"a field of {size} bytes with {end - position} bytes left")
            part = message[position : position + size]
            yield key >> 3, bytes(part) if size < _COPIED_BYTES else part
            position += size

    def signed_numbers(self, value: int | Message) -> list[int]:
        """Return a repeated int64 or int32 field, whether packed or not."""
        if isinstance(value, int):
            return [signed(value)]
        numbers: list[int] = []
        position, end = 0, len(value)
        self._left -= end
        if self._left < 0:
            raise FormatError("more numbers than any model has")
        while position < end:
            number, position = varint(value, position)
            numbers.append(signed(number))
        return numbers


def varint(message: Message, position: int) -> tuple[int, int]:
    """Return the unsigned number at `position` and where it ends."""
    if position >= len(message):
        raise FormatError("the message ends within a number")
    first = message[position]
    if first < 0x80:
        return first, position + 1
    return _rest_of_varint(message, position + 1, first)


def _rest_of_varint(message: Message, position: int, first: int) -> tuple[int, int]:
    number, shift = first & 0x7F, 7
    for place in range(position, len(message)):
        byte = message[place]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, place + 1
        shift += 7
        if shift > _MAX_SHIFT:
            raise FormatError(f"a number of more than 64 bits at byte {position}")
    raise FormatError("the message ends within a number")


def signed(number: int) -> int:
    """Return a varint as the int64 that it encodes."""
    return number - (1 << 64) if number >= 1 << 63 else number


def as_bytes(value: int | Message) -> Message:
    """Return the bytes of a length-delimited field."""
    if isinstance(value, int):
        raise FormatError("a number where a message belongs")
    return value


def as_int(value: int | Message) -> int:
    """Return the number of a varint field."""
    if isinstance(value, int):
        return value
    raise FormatError("a message where a number belongs")


def as_text(value: int | Message) -> str:
    """Return the text of a string field."""
    try:
        return str(as_bytes(value), "utf-8")
    except UnicodeDecodeError:
        raise FormatError("a name is not UTF-8") from None


def shape_of(lengths: list[int]) -> tuple[int, ...]:
    """Return axes as a shape; a rank that no tensor has would cost time wherever it is used."""
    if len(lengths) > RANK_LIMIT:
        raise FormatError(f"a shape of {len(lengths)} axes")
    return tuple(lengths)


def packed_floats(value: Message, code: str) -> tuple[float, ...]:
    """Return packed fixed-width numbers; `code` is `f` (float) or `d` (double)."""
    size = struct.calcsize(code)
    if len(value) % size:
        raise FormatError(f"{len(value)} bytes of packed {size}-byte numbers")
    return struct.unpack(f"<{len(value) // size}{code}", value)
