"""A service whose connection misbehaves: slow, cut off, full of junk, silent in the middle.

It stands between a service and its client, so every service can have every fault. What the
service sends is damaged; what it reads comes as slowly as it sends.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.wire import Stream

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from orchestrator.virtual.wire import ByteWriter

_CHUNK_BYTES: Final = 1 << 14
_READ_BYTES: Final = 1 << 16
_OVERSIZED_PREFIX: Final = b"\x7f\xff\xff\xff"  # a length that no client should wait for
_MAX_UNREAD_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Tampering:
    """What is wrong with the connections of one service; all limits count sent bytes."""

    slam_at_byte: int | None = None  # closed there at once, as by a crash of the daemon
    stall_at_byte: int | None = None  # sends and reads nothing more, and stays open
    junk_from_byte: int | None = None  # from there on random bytes, as many as were due
    oversized: bool = False  # the first reply begins with the length of 2 GB
    bytes_per_s: float | None = None  # each way
    idle_s: float | None = None  # closed after so long without a byte either way
    seed: int = 0  # of the junk

    @property
    def is_slow(self) -> bool:
        """Whether what the client sends is held back too."""
        return (self.bytes_per_s, self.stall_at_byte, self.idle_s) != (None, None, None)


@asynccontextmanager
async def tampered(stream: Stream, tampering: Tampering) -> AsyncIterator[Stream]:
    """Give the stream as a service with this fault has it, until the service is done."""
    gauge = _Gauge(stream.writer, tampering)
    writer = _TamperedWriter(stream.writer, gauge, tampering)
    try:
        if not tampering.is_slow:
            yield _TamperedStream(stream, stream.reader, writer)
            return
        async with asyncio.TaskGroup() as group:
            reader = asyncio.StreamReader(limit=_MAX_UNREAD_BYTES)
            pump = group.create_task(_pump(stream.reader, reader, gauge))
            try:
                yield _TamperedStream(stream, reader, writer)
            finally:
                pump.cancel()
    finally:
        gauge.stop()


class _TamperedStream(Stream):
    def __init__(self, inner: Stream, reader: asyncio.StreamReader, writer: ByteWriter) -> None:
        super().__init__(reader, writer)
        self._inner = inner

    def expect_tls(self) -> None:
        self._inner.expect_tls()

    async def start_tls(self, context: ssl.SSLContext) -> None:
        await self._inner.start_tls(context)


class _Gauge:
    """Counts and paces the bytes of one connection, and closes it when it is idle."""

    def __init__(self, writer: ByteWriter, tampering: Tampering) -> None:
        self._writer, self._tampering = writer, tampering
        self._timer: asyncio.TimerHandle | None = None
        self.stalled = False
        self.touch()

    def touch(self) -> None:
        """Note that bytes moved."""
        if self._tampering.idle_s is None:
            return
        self.stop()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._tampering.idle_s, self._writer.abort)

    def stop(self) -> None:
        """Watch no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def pace(self, count: int) -> None:
        """Wait as long as so many bytes take, for ever on a stalled connection."""
        self.touch()
        if self.stalled:
            await asyncio.Event().wait()
        if self._tampering.bytes_per_s is not None:
            await asyncio.sleep(count / self._tampering.bytes_per_s)


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamReader, gauge: _Gauge) -> None:
    """Carry what the client sends, at the pace of the fault, until it leaves."""
    try:
        while data := await source.read(_READ_BYTES):
            await gauge.pace(len(data))
            target.feed_data(data)
        target.feed_eof()
    except OSError as error:
        target.set_exception(error)


class _TamperedWriter:
    """`ByteWriter` that damages."""

    def __init__(self, inner: ByteWriter, gauge: _Gauge, tampering: Tampering) -> None:
        self._inner, self._gauge, self._tampering = inner, gauge, tampering
        self._sent = 0
        self._waiting = b""  # what a slow connection has still to send
        self._junk = random.Random(tampering.seed)  # noqa: S311 - no secret

    def write(self, data: bytes) -> None:
        """Queue bytes, or what becomes of them."""
        if self._gauge.stalled:
            return
        data = self._damaged(data)
        for limit in (self._tampering.slam_at_byte, self._tampering.stall_at_byte):
            if limit is not None:
                data = data[: max(0, limit - self._sent)]
        self._sent += len(data)
        if self._tampering.bytes_per_s is None:
            self._inner.write(data)
        else:
            self._waiting += data
        if self._reached(self._tampering.stall_at_byte):
            self._gauge.stalled = True

    async def drain(self) -> None:
        """Send at the fault's pace; close where it says so."""
        while self._waiting:
            chunk, self._waiting = self._waiting[:_CHUNK_BYTES], self._waiting[_CHUNK_BYTES:]
            await self._gauge.pace(len(chunk))
            self._inner.write(chunk)
            await self._inner.drain()
        self._gauge.touch()
        await self._inner.drain()
        if self._reached(self._tampering.slam_at_byte):
            self.close()  # what was sent until here arrives
            raise ConnectionAbortedError("slammed shut on order")

    def close(self) -> None:
        """End the connection."""
        self._inner.close()

    def abort(self) -> None:
        """End the connection at once."""
        self._inner.abort()

    def _reached(self, limit: int | None) -> bool:
        return limit is not None and self._sent >= limit

    def _damaged(self, data: bytes) -> bytes:
        if self._tampering.oversized and self._sent == 0:
            return _OVERSIZED_PREFIX + data[len(_OVERSIZED_PREFIX) :]
        start = self._tampering.junk_from_byte
        if start is None:
            return data
        good = max(0, start - self._sent)
        return data[:good] + self._junk.randbytes(len(data) - len(data[:good]))
