"""Writes the protobuf messages of a model specification, by field number."""

from __future__ import annotations

DTYPES = {"fp16": 10, "fp32": 11, "int32": 23, "string": 2, "int4": 25, "int8": 21, "uint4": 35}
ARRAY_DTYPES = {"fp16": 65552, "fp32": 65568, "int32": 131104}

Part = bytes | str | int


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, content: Part) -> bytes:
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    if isinstance(content, str):
        content = content.encode()
    return varint(number << 3 | 2) + varint(len(content)) + content


def message(*fields: tuple[int, Part]) -> bytes:
    return b"".join(field(number, content) for number, content in fields)


def entry(key: str, content: bytes) -> bytes:
    return message((1, key), (2, content))


def packed(numbers: tuple[int, ...]) -> bytes:
    return b"".join(varint(number) for number in numbers)


def tensor_type(dtype: str, shape: tuple[int, ...]) -> bytes:
    dimensions = [(3, message((1, message((1, length))))) for length in shape]
    return message((1, message((1, DTYPES[dtype]), (2, len(shape)), *dimensions)))


def state_type(dtype: str, shape: tuple[int, ...]) -> bytes:
    return message((5, message((1, tensor_type(dtype, shape)))))


def named(name: str, kind: bytes) -> bytes:
    return message((1, name), (2, kind))


def blob_value(dtype: str, shape: tuple[int, ...], file: str, offset: int) -> bytes:
    return message((2, tensor_type(dtype, shape)), (5, message((1, file), (2, offset))))


def ints_value(numbers: tuple[int, ...]) -> bytes:
    tensor = message((2, message((1, packed(numbers)))))
    return message((2, tensor_type("int32", (len(numbers),))), (3, message((1, tensor))))


def operation(
    kind: str,
    inputs: dict[str, str | bytes | tuple[str, ...]],
    outputs: tuple[bytes, ...] = (),
    attributes: dict[str, bytes] | None = None,
) -> bytes:
    """An operation; an input is a name, several names, or the bytes of a value."""
    arguments = []
    for parameter, given in inputs.items():
        names = given if isinstance(given, tuple) else (given,)
        bindings = [
            (1, message((1, name) if isinstance(name, str) else (2, name))) for name in names
        ]
        arguments.append((2, entry(parameter, message(*bindings))))
    return message(
        (1, kind),
        *arguments,
        *((3, output) for output in outputs),
        *((5, entry(name, value)) for name, value in (attributes or {}).items()),
    )


def array_type(
    dtype: str,
    shape: tuple[int, ...],
    enumerated: tuple[tuple[int, ...], ...] = (),
    ranges: tuple[tuple[int, int], ...] = (),
) -> bytes:
    fields: list[tuple[int, Part]] = [(1, packed(shape)), (2, ARRAY_DTYPES[dtype])]
    if enumerated:
        shapes = [(1, message((1, packed(choice)))) for choice in enumerated]
        fields.append((21, message(*shapes)))
    if ranges:
        bounds = [(1, message((1, least), (2, most))) for least, most in ranges]
        fields.append((31, message(*bounds)))
    return message(*fields)


def feature(name: str, array: bytes) -> bytes:
    return message((1, name), (3, message((5, array))))


def state_feature(name: str, array: bytes) -> bytes:
    return message((1, name), (3, message((8, message((1, array))))))
