"""Decodes constants that lie in the program itself: `ImmediateValue.tensor` of MIL.proto."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.mlpackage.errors import FormatError
from orchestrator.mlpackage.protobuf import Message, WireReader, as_bytes, as_text, packed_floats

if TYPE_CHECKING:
    from orchestrator.mlpackage.graph import Value

Literal = tuple[float, ...] | tuple[int, ...] | tuple[str, ...] | bytes


def literal(value: Value) -> Literal:
    """Return the flat elements of a constant that lies in the program.

    Returns:
        Shape (n,): floats, ints (bools are 0 and 1) or texts. MIL keeps small types (`fp16`,
        `int8`, ...) as raw little-endian bytes: those come back as `bytes`, to be read by
        `value.type.dtype`. An empty tuple where the value holds nothing.

    Raises:
        FormatError: If the bytes are not a tensor, or the constant lies in a weight file.
    """
    if value.blob is not None:
        raise FormatError(f"the constant lies in {value.blob.file}, not in the program")
    wire = WireReader()
    for number, tensor in wire.fields(value.immediate):
        if number == 1:
            for choice, repeated in wire.fields(as_bytes(tensor)):
                return _elements(wire, choice, as_bytes(repeated))
    return ()


def _elements(wire: WireReader, choice: int, repeated: Message) -> Literal:
    """Return the elements of one of the `Repeated...` messages, whose one field is 1."""
    parts = [part for number, part in wire.fields(repeated) if number == 1]
    if choice in (1, 6):
        code = "f" if choice == 1 else "d"
        return tuple(x for part in parts for x in packed_floats(as_bytes(part), code))
    if choice in (2, 3, 5):
        return tuple(x for part in parts for x in wire.signed_numbers(part))
    if choice == 4:
        return tuple(as_text(part) for part in parts)
    if choice == 7:
        return b"".join(as_bytes(part) for part in parts)
    raise FormatError(f"a tensor of an unknown kind {choice}")


def text_of(value: Value | None) -> str | None:
    """Return the text of a scalar string constant, None for anything else."""
    if value is None or value.type.dtype != "string" or value.blob is not None:
        return None
    elements = literal(value)
    return elements[0] if len(elements) == 1 and isinstance(elements[0], str) else None
