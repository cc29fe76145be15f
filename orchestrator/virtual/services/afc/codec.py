"""AFC on the wire: packets, operations, status codes.

A packet is a 40-byte little-endian header (magic, whole length, length up to the payload, packet
number, operation) and a body. Replies repeat the packet number.
Source: libimobiledevice, `src/afc.h` and `include/libimobiledevice/afc.h`.
"""

from __future__ import annotations

import errno
import os
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.wire import ProtocolError

if TYPE_CHECKING:
    import asyncio

_MAGIC: Final = b"CFA6LPAA"
_HEADER: Final = struct.Struct("<8sQQQQ")
_MAX_BODY_BYTES: Final = 64 << 20


class Operation(IntEnum):
    """What a packet asks or answers."""

    STATUS = 0x01
    DATA = 0x02
    READ_DIR = 0x03
    TRUNCATE = 0x07
    REMOVE_PATH = 0x08
    MAKE_DIR = 0x09
    GET_FILE_INFO = 0x0A
    GET_DEVICE_INFO = 0x0B
    FILE_OPEN = 0x0D
    FILE_OPEN_RESULT = 0x0E
    FILE_READ = 0x0F
    FILE_WRITE = 0x10
    FILE_SEEK = 0x11
    FILE_TELL = 0x12
    FILE_TELL_RESULT = 0x13
    FILE_CLOSE = 0x14
    FILE_SET_SIZE = 0x15
    RENAME_PATH = 0x18
    FILE_LOCK = 0x1B
    MAKE_LINK = 0x1C
    SET_FILE_TIME = 0x1E
    REMOVE_PATH_AND_CONTENTS = 0x22


class Status(IntEnum):
    """Result of an operation."""

    SUCCESS = 0
    UNKNOWN_ERROR = 1
    READ_ERROR = 4
    INVALID_ARGUMENT = 7
    OBJECT_NOT_FOUND = 8
    OBJECT_IS_DIR = 9
    PERMISSION_DENIED = 10
    OPERATION_NOT_SUPPORTED = 15
    OBJECT_EXISTS = 16
    NO_SPACE_LEFT = 18
    IO_ERROR = 20
    DIR_NOT_EMPTY = 33


_STATUS_OF_ERRNO: Final = {
    errno.ENOENT: Status.OBJECT_NOT_FOUND,
    errno.ENOTDIR: Status.OBJECT_NOT_FOUND,
    errno.EISDIR: Status.OBJECT_IS_DIR,
    errno.EACCES: Status.PERMISSION_DENIED,
    errno.EPERM: Status.PERMISSION_DENIED,
    errno.ELOOP: Status.PERMISSION_DENIED,
    errno.EEXIST: Status.OBJECT_EXISTS,
    errno.ENOSPC: Status.NO_SPACE_LEFT,
    errno.EIO: Status.IO_ERROR,
    errno.ENOTEMPTY: Status.DIR_NOT_EMPTY,
    errno.EBADF: Status.INVALID_ARGUMENT,
    errno.EINVAL: Status.INVALID_ARGUMENT,
    errno.ENAMETOOLONG: Status.INVALID_ARGUMENT,
}

OPEN_FLAGS: Final = {
    1: os.O_RDONLY,
    2: os.O_RDWR | os.O_CREAT,
    3: os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    4: os.O_RDWR | os.O_CREAT | os.O_TRUNC,
    5: os.O_WRONLY | os.O_APPEND | os.O_CREAT,
    6: os.O_RDWR | os.O_APPEND | os.O_CREAT,
}


class RefusedError(Exception):
    """An operation that ends with a status of its own, not with that of a host's error."""

    def __init__(self, status: Status) -> None:
        self.status = status
        super().__init__(status.name)


@dataclass(frozen=True, slots=True)
class Packet:
    """One request: its number, its operation as sent, and its body."""

    number: int
    operation: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer."""

    operation: Operation
    body: bytes

    @classmethod
    def status(cls, status: Status = Status.SUCCESS) -> Reply:
        """Return an answer that is a status only."""
        return cls(Operation.STATUS, struct.pack("<Q", status))

    @classmethod
    def pairs(cls, values: dict[str, object]) -> Reply:
        """Return an answer that is a list of keys and values."""
        flat = [text for key, value in values.items() for text in (key, str(value))]
        return cls.names(flat)

    @classmethod
    def names(cls, names: list[str]) -> Reply:
        """Return an answer that is a list of texts, each ended by NUL."""
        return cls(Operation.DATA, b"".join(os.fsencode(name) + b"\0" for name in names))


def status_of(error: OSError) -> Status:
    """Return the status that stands for an error of the host's file system."""
    return _STATUS_OF_ERRNO.get(error.errno or 0, Status.UNKNOWN_ERROR)


async def read_packet(reader: asyncio.StreamReader) -> Packet:
    """Return the next request.

    Raises:
        ProtocolError: If the header makes no sense.
        asyncio.IncompleteReadError: If the peer left.
    """
    header = await reader.readexactly(_HEADER.size)
    magic, whole, _, number, operation = _HEADER.unpack(header)
    length = whole - _HEADER.size
    if magic != _MAGIC or not 0 <= length <= _MAX_BODY_BYTES:
        raise ProtocolError("not an AFC packet")
    return Packet(number, operation, await reader.readexactly(length))


def encode_reply(number: int, reply: Reply) -> bytes:
    """Return the bytes of an answer to the request of that number."""
    # In a DATA reply everything is payload; clients read it from where `this` ends.
    inline = 0 if reply.operation is Operation.DATA else len(reply.body)
    whole = _HEADER.size + len(reply.body)
    header = _HEADER.pack(_MAGIC, whole, _HEADER.size + inline, number, reply.operation)
    return header + reply.body
