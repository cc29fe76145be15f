"""The phone's end of a RemoteXPC connection: the subset of HTTP/2 that it rides on.

Source: RFC 9113 for the frames; the order of the opening is that of pymobiledevice3's
`remote/remotexpc.py`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.wire import ProtocolError
from orchestrator.virtual.xpc.codec import MessageFlags, encode_message, take_message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from orchestrator.virtual.wire import Stream
    from orchestrator.virtual.xpc.codec import Message, XpcObject

ROOT_STREAM: Final = 1
REPLY_STREAM: Final = 3

_PREFACE_BYTES: Final = 24
_MAX_FRAME_BYTES: Final = 16_384
_MAX_INCOMING_BYTES: Final = 1 << 20
_MAX_STREAMS: Final = 100
_INITIAL_WINDOW_BYTES: Final = 16 << 20
_ACK: Final = 0x1
_END_HEADERS: Final = 0x4


class FrameKind(IntEnum):
    """HTTP/2 frame types."""

    DATA = 0
    HEADERS = 1
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8


@dataclass(frozen=True, slots=True)
class Frame:
    """One HTTP/2 frame."""

    kind: int
    flags: int
    stream_id: int
    body: bytes = b""

    def encode(self) -> bytes:
        """Return the bytes of the frame."""
        length = len(self.body).to_bytes(3, "big")
        head = bytes([self.kind, self.flags]) + self.stream_id.to_bytes(4, "big")
        return length + head + self.body


class XpcPeer:
    """One connection. Each message with a body is handed to `on_message`, one after the other."""

    def __init__(
        self, stream: Stream, on_message: Callable[[XpcPeer, Message], Awaitable[None]]
    ) -> None:
        self._stream, self._on_message = stream, on_message
        self._buffers: dict[int, bytearray] = {}
        self._next_id = 2

    async def send(self, body: XpcObject) -> None:
        """Send a message that answers nothing."""
        message_id, self._next_id = self._next_id, self._next_id + 2
        await self._send(ROOT_STREAM, MessageFlags(0), message_id, body)

    async def reply(self, request: Message, body: XpcObject) -> None:
        """Answer a request on the reply stream."""
        await self._send(REPLY_STREAM, MessageFlags.REPLY, request.message_id, body)

    async def run(self) -> None:
        """Serve until the peer leaves."""
        preface = await self._stream.reader.readexactly(_PREFACE_BYTES)
        if not preface.startswith(b"PRI * HTTP/2.0"):
            raise ProtocolError("not an HTTP/2 client")
        await self._stream.send(_greeting())
        while True:
            frame = await self._read_frame()
            if frame.kind == FrameKind.GOAWAY:
                return
            await self._take(frame)

    async def _read_frame(self) -> Frame:
        head = await self._stream.reader.readexactly(9)
        length = int.from_bytes(head[:3], "big")
        if length > _MAX_INCOMING_BYTES:
            raise ProtocolError(f"a frame of {length} bytes")
        body = await self._stream.reader.readexactly(length)
        return Frame(head[3], head[4], int.from_bytes(head[5:], "big") & 0x7FFFFFFF, body)

    async def _take(self, frame: Frame) -> None:
        acknowledges = bool(frame.flags & _ACK)
        if frame.kind == FrameKind.SETTINGS and not acknowledges:
            await self._write(Frame(FrameKind.SETTINGS, _ACK, 0))
        elif frame.kind == FrameKind.PING and not acknowledges:
            await self._write(Frame(FrameKind.PING, _ACK, 0, frame.body))
        elif frame.kind == FrameKind.HEADERS:
            await self._open(frame.stream_id)
        elif frame.kind == FrameKind.DATA:
            await self._take_data(frame)

    async def _open(self, stream_id: int) -> None:
        """Mirror a stream that the client opened, with the messages that open it here."""
        if stream_id in self._buffers or len(self._buffers) >= _MAX_STREAMS:
            return
        self._buffers[stream_id] = bytearray()
        opening = MessageFlags.ALWAYS_SET | MessageFlags.DATA_PRESENT
        if stream_id == ROOT_STREAM:
            await self._write(
                Frame(FrameKind.HEADERS, _END_HEADERS, ROOT_STREAM),
                _data(ROOT_STREAM, encode_message(opening, body={})),
            )
        elif stream_id == REPLY_STREAM:
            ready = MessageFlags.ALWAYS_SET | MessageFlags.INIT_HANDSHAKE
            ping = MessageFlags.ALWAYS_SET | MessageFlags.PING
            await self._write(
                Frame(FrameKind.HEADERS, _END_HEADERS, REPLY_STREAM),
                _data(REPLY_STREAM, encode_message(ready)),
                _data(ROOT_STREAM, encode_message(ping)),
            )

    async def _take_data(self, frame: Frame) -> None:
        buffer = self._buffers.get(frame.stream_id)
        if buffer is None:
            raise ProtocolError(f"data on stream {frame.stream_id}, which is not open")
        buffer += frame.body
        if frame.body:
            grant = struct.pack(">I", len(frame.body))
            await self._write(
                Frame(FrameKind.WINDOW_UPDATE, 0, 0, grant),
                Frame(FrameKind.WINDOW_UPDATE, 0, frame.stream_id, grant),
            )
        while (message := take_message(buffer)) is not None:
            if message.body:
                await self._on_message(self, message)

    async def _send(
        self, stream_id: int, flags: MessageFlags, message_id: int, body: XpcObject
    ) -> None:
        flags |= MessageFlags.ALWAYS_SET | MessageFlags.DATA_PRESENT
        data = encode_message(flags, message_id, body)
        starts = range(0, len(data), _MAX_FRAME_BYTES)
        await self._write(*(_data(stream_id, data[at : at + _MAX_FRAME_BYTES]) for at in starts))

    async def _write(self, *frames: Frame) -> None:
        await self._stream.send(b"".join(frame.encode() for frame in frames))


def _data(stream_id: int, body: bytes) -> Frame:
    return Frame(FrameKind.DATA, 0, stream_id, body)


def _greeting() -> bytes:
    # SETTINGS must come first, within 3 s: most streams at once, then the window of each.
    settings = struct.pack(">HIHI", 3, _MAX_STREAMS, 4, _INITIAL_WINDOW_BYTES)
    grant = struct.pack(">I", (1 << 30) - 65_536)
    frames = (
        Frame(FrameKind.SETTINGS, 0, 0, settings),
        Frame(FrameKind.WINDOW_UPDATE, 0, 0, grant),
    )
    return b"".join(frame.encode() for frame in frames)
