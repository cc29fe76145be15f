"""XPC objects as bytes, and the wrapper around a message.

Everything is little-endian and padded to four bytes. Lengths come from the peer and are checked.
"""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from orchestrator.virtual.wire import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

XpcObject: TypeAlias = Any  # None, bool, int, float, str, bytes, UUID, datetime, list or dict

WRAPPER: Final = struct.Struct("<IIQQ")
_WRAPPER_MAGIC: Final = 0x29B00B92
_PAYLOAD: Final = struct.Struct("<II")
_PAYLOAD_MAGIC: Final = 0x42133742
_PAYLOAD_VERSION: Final = 5
_MAX_MESSAGE_BYTES: Final = 64 << 20
_MAX_DEPTH: Final = 64


class _Tag(IntEnum):
    NULL = 0x1000
    BOOL = 0x2000
    INT64 = 0x3000
    UINT64 = 0x4000
    DOUBLE = 0x5000
    DATE = 0x7000
    DATA = 0x8000
    STRING = 0x9000
    UUID = 0xA000
    ARRAY = 0xE000
    DICTIONARY = 0xF000


class MessageFlags(IntFlag):
    """Flags of a wrapper."""

    ALWAYS_SET = 0x1
    DATA_PRESENT = 0x100
    PING = 0x200
    WANTS_REPLY = 0x10000
    REPLY = 0x20000
    INIT_HANDSHAKE = 0x400000


class Unsigned(int):
    """An unsigned 64-bit integer; a plain `int` is sent as a signed one."""


@dataclass(frozen=True, slots=True)
class Message:
    """One XPC message."""

    flags: int
    message_id: int
    body: XpcObject  # None where there is no payload


def encode(value: XpcObject) -> bytes:
    """Return the bytes of one object.

    Raises:
        TypeError: If the object has no XPC form.
    """
    for kind, encoder in _ENCODERS.items():
        if isinstance(value, kind):
            return encoder(value)
    raise TypeError(f"{type(value).__name__} has no XPC form")


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _encode_counted(tag: _Tag, data: bytes) -> bytes:
    return struct.pack("<II", tag, len(data)) + _padded(data)


def _encode_list(items: list[XpcObject] | tuple[XpcObject, ...]) -> bytes:
    body = struct.pack("<I", len(items)) + b"".join(encode(item) for item in items)
    return struct.pack("<II", _Tag.ARRAY, len(body)) + body


def _encode_dictionary(items: dict[str, XpcObject]) -> bytes:
    pairs = b"".join(_padded(key.encode() + b"\0") + encode(item) for key, item in items.items())
    body = struct.pack("<I", len(items)) + pairs
    return struct.pack("<II", _Tag.DICTIONARY, len(body)) + body


# The order matters: a bool and an `Unsigned` are ints too.
_ENCODERS: Final[dict[type, Callable[[Any], bytes]]] = {
    type(None): lambda _: struct.pack("<I", _Tag.NULL),
    bool: lambda value: struct.pack("<II", _Tag.BOOL, value),
    Unsigned: lambda value: struct.pack("<IQ", _Tag.UINT64, value),
    int: lambda value: struct.pack("<Iq", _Tag.INT64, value),
    float: lambda value: struct.pack("<Id", _Tag.DOUBLE, value),
    str: lambda value: _encode_counted(_Tag.STRING, value.encode() + b"\0"),
    bytes: lambda value: _encode_counted(_Tag.DATA, value),
    uuid.UUID: lambda value: struct.pack("<I", _Tag.UUID) + value.bytes,
    list: _encode_list,
    tuple: _encode_list,
    dict: _encode_dictionary,
}


def decode(data: bytes) -> XpcObject:
    """Return the object at the start of the bytes.

    Raises:
        ProtocolError: If the bytes are no XPC object.
    """
    try:
        return _Decoder(data).value(0)
    except (struct.error, UnicodeDecodeError, OverflowError, ValueError) as error:
        raise ProtocolError(f"not an XPC object: {error}") from error


class _Decoder:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._simple: dict[int, Callable[[], XpcObject]] = {
            _Tag.NULL: lambda: None,
            _Tag.BOOL: lambda: bool(self._number("<I")),
            _Tag.INT64: lambda: self._number("<q"),
            _Tag.UINT64: lambda: Unsigned(self._number("<Q")),
            _Tag.DOUBLE: lambda: self._number("<d"),
            _Tag.DATE: lambda: dt.datetime.fromtimestamp(self._number("<q") / 1e9, dt.UTC),
            _Tag.DATA: self._counted,
            _Tag.STRING: self._string,
            _Tag.UUID: lambda: uuid.UUID(bytes=self._bytes(16)),
        }

    def value(self, depth: int) -> XpcObject:
        if depth > _MAX_DEPTH:
            raise ProtocolError("nested too deeply")
        tag = self._number("<I")
        if tag in self._simple:
            return self._simple[tag]()
        if tag == _Tag.ARRAY:
            return [self.value(depth + 1) for _ in range(self._count())]
        if tag == _Tag.DICTIONARY:
            return {self._key(): self.value(depth + 1) for _ in range(self._count())}
        raise ProtocolError(f"unknown type {tag:#x}")

    def _number(self, layout: str) -> XpcObject:
        (number,) = struct.unpack(layout, self._bytes(struct.calcsize(layout)))
        return number

    def _count(self) -> int:
        _, count = struct.unpack("<II", self._bytes(8))
        if count > len(self._data):
            raise ProtocolError("more items than bytes")
        return int(count)

    def _bytes(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise ProtocolError("cut short")
        data, self._at = self._data[self._at : end], end
        return data

    def _counted(self) -> bytes:
        length = self._number("<I")
        data = self._bytes(length)
        self._at += -length % 4
        return data

    def _string(self) -> str:
        return self._counted().split(b"\0")[0].decode()

    def _key(self) -> str:
        end = self._data.index(b"\0", self._at)
        length = end + 1 - self._at
        key = self._bytes(length)[:-1].decode()
        self._at += -length % 4
        return key


def encode_message(flags: int, message_id: int = 0, body: XpcObject = None) -> bytes:
    """Return a wrapper with its payload; None is no payload."""
    payload = b""
    if body is not None:
        payload = _PAYLOAD.pack(_PAYLOAD_MAGIC, _PAYLOAD_VERSION) + encode(body)
    return WRAPPER.pack(_WRAPPER_MAGIC, flags, len(payload), message_id) + payload


def take_message(buffer: bytearray) -> Message | None:
    """Remove one whole message from the front of a buffer, or return None if it is not whole.

    Raises:
        ProtocolError: If the buffer does not begin with a message.
    """
    if len(buffer) < WRAPPER.size:
        return None
    magic, flags, size, message_id = WRAPPER.unpack_from(buffer)
    if magic != _WRAPPER_MAGIC or size > _MAX_MESSAGE_BYTES:
        raise ProtocolError("not an XPC message")
    if len(buffer) < WRAPPER.size + size:
        return None
    payload = bytes(buffer[WRAPPER.size : WRAPPER.size + size])
    del buffer[: WRAPPER.size + size]
    body = decode(payload[_PAYLOAD.size :]) if size > _PAYLOAD.size else None
    return Message(flags, message_id, body)
