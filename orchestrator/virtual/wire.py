"""One open connection of a virtual phone, and the length-prefixed plists most services speak.

A service takes a `Stream` and nothing else, so the same code runs behind usbmux, behind TLS, on
a loopback port and inside the IPv6 tunnel.
"""

from __future__ import annotations

import asyncio
import plistlib
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias
from xml.parsers.expat import ExpatError

if TYPE_CHECKING:
    import ssl

Plist: TypeAlias = dict[str, Any]

MAX_PLIST_BYTES: Final = 64 << 20
READER_LIMIT_BYTES: Final = 4 << 20  # AFC clients write 4 MB in one request

_PREFIX: Final = {"big": struct.Struct(">I"), "little": struct.Struct("<I")}


class ProtocolError(ValueError):
    """The peer sent bytes that the service cannot read; its connection ends."""


# What plistlib answers hostile input with; a LookupError is an encoding that does not exist.
HOSTILE_PLIST: Final = (
    *(ValueError, ExpatError, AttributeError, TypeError, OverflowError, LookupError),
    *(RecursionError, MemoryError),
)

# How a connection ends when its peer goes, rather than when a service has a fault.
PEER_LOST: Final = (asyncio.IncompleteReadError, ProtocolError, OSError)


class ByteWriter(Protocol):
    """The part of `asyncio.StreamWriter` that a service uses; the tunnel has its own."""

    def write(self, data: bytes) -> None:
        """Queue bytes."""

    async def drain(self) -> None:
        """Wait until the queue is short. Raises `ConnectionError` once the peer is gone."""

    def close(self) -> None:
        """Send what is queued, then end the stream."""

    def abort(self) -> None:
        """End the stream at once, as an unplugged cable does."""


class Stream:
    """A connection as a service sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: ByteWriter) -> None:
        self.reader, self.writer = reader, writer

    async def read_plist(self, order: Literal["big", "little"] = "big") -> Plist:
        """Return the next plist dictionary.

        Raises:
            ProtocolError: If the frame is longer than `MAX_PLIST_BYTES` or no dictionary.
            asyncio.IncompleteReadError: If the peer left.
        """
        prefix = _PREFIX[order]
        (length,) = prefix.unpack(await self.reader.readexactly(prefix.size))
        if length > MAX_PLIST_BYTES:
            raise ProtocolError(f"a plist of {length} bytes")
        return parse_plist(await self.reader.readexactly(length))

    async def send_plist(self, value: Plist, order: Literal["big", "little"] = "big") -> None:
        """Send one plist, XML as the daemons do."""
        body = encode_plist(value)
        await self.send(_PREFIX[order].pack(len(body)) + body)

    def queue_plist(self, value: Plist) -> None:
        """Send one plist without waiting for room: a slow client must hold nobody up."""
        body = encode_plist(value)
        self.writer.write(_PREFIX["big"].pack(len(body)) + body)

    async def send(self, data: bytes) -> None:
        """Send bytes and wait for room."""
        self.writer.write(data)
        await self.writer.drain()

    async def until_closed(self) -> None:
        """Return when the peer has ended its half; what it still sends is thrown away."""
        while await self.reader.read(4096):
            pass

    def expect_tls(self) -> None:
        """Be ready for a TLS handshake after the next reply; only a `SocketStream` can."""
        raise ProtocolError("this stream cannot turn to TLS")

    async def start_tls(self, context: ssl.SSLContext) -> None:
        """Turn the connection to TLS as its server; only a `SocketStream` can."""
        raise ProtocolError(f"this stream cannot turn to TLS with {context}")


class _SocketWriter:
    """`ByteWriter` over an asyncio socket."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.socket = writer

    def write(self, data: bytes) -> None:
        """Queue bytes."""
        self.socket.write(data)

    async def drain(self) -> None:
        """Wait until the queue is short."""
        await self.socket.drain()

    def close(self) -> None:
        """Send what is queued, then close."""
        self.socket.close()

    def abort(self) -> None:
        """Close at once."""
        self.socket.transport.abort()


class SocketStream(Stream):
    """A stream on a socket, which can turn to TLS."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._socket_writer = _SocketWriter(writer)
        super().__init__(reader, self._socket_writer)

    def expect_tls(self) -> None:
        """Stop reading before the reply that lets the client send its ClientHello.

        Without this the first handshake bytes land in the plain reader and are lost.
        """
        transport = self._socket_writer.socket.transport
        if isinstance(transport, asyncio.ReadTransport):
            transport.pause_reading()

    async def start_tls(self, context: ssl.SSLContext) -> None:
        """Turn the connection to TLS as its server."""
        await self._socket_writer.socket.start_tls(context)


Service: TypeAlias = Callable[[Stream], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What stands behind a port: a service, and whether it speaks TLS from the first byte."""

    name: str
    serve: Service
    tls: bool = False


def parse_plist(data: bytes) -> Plist:
    """Return the dictionary of an XML or binary plist.

    Raises:
        ProtocolError: If the bytes are no plist, or no dictionary.
    """
    try:
        value = plistlib.loads(data)
    except HOSTILE_PLIST as error:
        raise ProtocolError(f"not a plist: {error}") from error
    if not isinstance(value, dict):
        raise ProtocolError(f"a plist of type {type(value).__name__}, not a dictionary")
    return value


def encode_plist(value: Plist) -> bytes:
    """Return the XML of a dictionary, or the binary form where XML cannot carry its texts.

    Raises:
        ProtocolError: If it has no form: a number of more than 64 bits, a half of a character.
    """
    try:
        return plistlib.dumps(value)
    except (ValueError, TypeError, OverflowError):
        return _encode_binary(value)


def _encode_binary(value: Plist) -> bytes:
    try:
        return plistlib.dumps(value, fmt=plistlib.FMT_BINARY)
    except (ValueError, TypeError, OverflowError) as error:
        raise ProtocolError(f"no plist can hold this: {error}") from error


async def splice(left: Stream, right: Stream) -> None:
    """Carry bytes both ways until one side ends; then end both."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_pump(left, right))
        group.create_task(_pump(right, left))


async def _pump(source: Stream, target: Stream) -> None:
    try:
        while data := await source.reader.read(1 << 16):
            await target.send(data)
    finally:
        target.writer.close()
