"""DTX on the wire: fragments, messages, arguments.

A message is cut into fragments of a 32-byte little-endian header each; the first of several
carries no body. Source: pymobiledevice3, `dtx/structs.py` and `dtx/DEVELOPMENT.md`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from orchestrator.virtual.dtx.nska import Archivable, archive, unarchive
from orchestrator.virtual.wire import ProtocolError

if TYPE_CHECKING:
    import asyncio

_MAGIC: Final = 0x1F3D5B79
_FRAGMENT: Final = struct.Struct("<IIHHIIIiI")
_PAYLOAD: Final = struct.Struct("<BxxxII4x")
_ARGUMENTS: Final = struct.Struct("<QQ")
_ARGUMENTS_MAGIC: Final = 0x1F0
_MAX_FRAGMENT_BYTES: Final = 128 << 10
_MAX_MESSAGE_BYTES: Final = 64 << 20
_MAX_OPEN_MESSAGES: Final = 64
_WANTS_REPLY: Final = 1


class MessageKind(IntEnum):
    """What a message is."""

    OK = 0
    DATA = 1
    DISPATCH = 2
    OBJECT = 3
    ERROR = 4


class _Primitive(IntEnum):
    STRING = 1
    OBJECT = 2
    INT32 = 3
    INT64 = 6
    DOUBLE = 9
    NULL = 10


_NUMBERS: Final = {
    _Primitive.INT32: struct.Struct("<i"),
    _Primitive.INT64: struct.Struct("<q"),
    _Primitive.DOUBLE: struct.Struct("<d"),
}


@dataclass(frozen=True, slots=True)
class Message:
    """One DTX message."""

    kind: int
    identifier: int
    conversation: int  # 0 for a new one, 1 for an answer
    channel: int  # negative where the phone speaks on a channel that the host opened
    payload: bytes = b""
    arguments: bytes = b""
    wants_reply: bool = False

    @classmethod
    def dispatch(
        cls, identifier: int, channel: int, selector: str, *arguments: Archivable
    ) -> Message:
        """Return a call of a selector at the host."""
        return cls(
            MessageKind.DISPATCH,
            identifier,
            0,
            channel,
            archive(selector),
            encode_arguments(arguments),
        )

    def selector(self) -> str:
        """Return the selector that the message calls.

        Raises:
            ProtocolError: If the payload is no archived string.
        """
        name = unarchive(self.payload)
        if not isinstance(name, str):
            raise ProtocolError("the selector is no string")
        return name


def encode(message: Message) -> bytes:
    """Return the fragments of a message."""
    total = len(message.arguments) + len(message.payload)
    body = _PAYLOAD.pack(message.kind, len(message.arguments), total)
    body += message.arguments + message.payload
    if len(body) <= _MAX_FRAGMENT_BYTES:
        return _fragment_header(message, 0, 1, len(body)) + body
    starts = range(0, len(body), _MAX_FRAGMENT_BYTES)
    parts = [body[at : at + _MAX_FRAGMENT_BYTES] for at in starts]
    count = len(parts) + 1
    fragments = [_fragment_header(message, 0, count, len(body))]
    for index, part in enumerate(parts, start=1):
        fragments.append(_fragment_header(message, index, count, len(part)) + part)
    return b"".join(fragments)


def _fragment_header(message: Message, index: int, count: int, size: int) -> bytes:
    return _FRAGMENT.pack(
        _MAGIC,
        _FRAGMENT.size,
        index,
        count,
        size,
        message.identifier,
        message.conversation,
        message.channel,
        _WANTS_REPLY if message.wants_reply else 0,
    )


@dataclass(frozen=True, slots=True)
class _Fragment:
    index: int
    count: int
    size: int
    identifier: int
    conversation: int
    channel: int
    flags: int


class MessageReader:
    """Joins fragments. Fragments of different messages may be interleaved."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._partial: dict[int, bytearray] = {}

    async def read(self) -> Message:
        """Return the next whole message.

        Raises:
            ProtocolError: If the bytes are no DTX.
            asyncio.IncompleteReadError: If the peer left.
        """
        while True:
            fragment = await self._read_header()
            if fragment.count > 1 and fragment.index == 0:
                self._begin(fragment)
                continue
            body = await self._reader.readexactly(fragment.size)
            if fragment.count > 1:
                joined = self._join(fragment, body)
                if joined is None:
                    continue
                body = joined
            return _parse(fragment, body)

    async def _read_header(self) -> _Fragment:
        head = await self._reader.readexactly(_FRAGMENT.size)
        magic, header_size, index, count, size, *rest = _FRAGMENT.unpack(head)
        if magic != _MAGIC or size > _MAX_MESSAGE_BYTES or header_size < _FRAGMENT.size:
            raise ProtocolError("not a DTX fragment")
        await self._reader.readexactly(header_size - _FRAGMENT.size)
        return _Fragment(index, count, size, *rest)

    def _begin(self, fragment: _Fragment) -> None:
        if len(self._partial) >= _MAX_OPEN_MESSAGES:
            raise ProtocolError("too many unfinished messages")
        self._partial[fragment.identifier] = bytearray()

    def _join(self, fragment: _Fragment, body: bytes) -> bytes | None:
        partial = self._partial.get(fragment.identifier)
        if partial is None:
            raise ProtocolError("a fragment without its first one")
        partial += body
        if len(partial) > _MAX_MESSAGE_BYTES:
            raise ProtocolError("the message is too long")
        if fragment.index + 1 < fragment.count:
            return None
        return bytes(self._partial.pop(fragment.identifier))


def _parse(fragment: _Fragment, body: bytes) -> Message:
    if len(body) < _PAYLOAD.size:
        raise ProtocolError("the message is cut short")
    kind, arguments_size, _ = _PAYLOAD.unpack_from(body)
    arguments_end = _PAYLOAD.size + arguments_size
    return Message(
        kind=kind,
        identifier=fragment.identifier,
        conversation=fragment.conversation,
        channel=fragment.channel,
        payload=body[arguments_end:],
        arguments=body[_PAYLOAD.size : arguments_end],
        wants_reply=bool(fragment.flags & _WANTS_REPLY),
    )


def encode_arguments(arguments: tuple[Any, ...]) -> bytes:
    """Return the argument block of a call; empty without arguments."""
    if not arguments:
        return b""
    body = b""
    for argument in arguments:
        archived = archive(argument)
        body += struct.pack("<III", _Primitive.NULL, _Primitive.OBJECT, len(archived)) + archived
    return _ARGUMENTS.pack(_ARGUMENTS_MAGIC, len(body)) + body


def decode_arguments(block: bytes) -> list[Any]:
    """Return the arguments of a call. Each has a key, which is nothing, before it.

    Raises:
        ProtocolError: If the block is cut short or has an unknown kind of argument.
    """
    return [value for _, value in decode_pairs(block)]


def decode_pairs(block: bytes) -> list[tuple[Any, Any]]:
    """Return the keys and values of an argument block; only keyed messages have keys.

    Raises:
        ProtocolError: If the block is cut short or has an unknown kind of argument.
    """
    pairs, at = [], _ARGUMENTS.size
    try:
        while at < len(block):
            key, at = _decode_primitive(block, at)
            value, at = _decode_primitive(block, at)
            pairs.append((key, value))
    except struct.error as error:
        raise ProtocolError(f"arguments are cut short: {error}") from error
    return pairs


def _decode_primitive(block: bytes, at: int) -> tuple[Any, int]:
    (kind,) = struct.unpack_from("<I", block, at)
    kind, at = kind & 0xFF, at + 4
    if kind == _Primitive.NULL:
        return None, at
    if kind in _NUMBERS:
        layout = _NUMBERS[_Primitive(kind)]
        return layout.unpack_from(block, at)[0], at + layout.size
    if kind not in {_Primitive.STRING, _Primitive.OBJECT}:
        raise ProtocolError(f"unknown argument kind {kind}")
    (length,) = struct.unpack_from("<I", block, at)
    data, end = block[at + 4 : at + 4 + length], at + 4 + length
    if end > len(block):
        raise ProtocolError("an argument is cut short")
    if kind == _Primitive.STRING:
        return data.decode("utf-8", "replace"), end
    return (unarchive(data) if data else None), end
