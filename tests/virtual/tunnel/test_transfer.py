"""The TCP stack against itself, on links that lose and reorder packets."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

import pytest

from orchestrator.virtual.tunnel.connection import RECEIVE_BUFFER_BYTES
from orchestrator.virtual.tunnel.packet import Flags, Options, Segment
from tests.virtual.tunnel.link import Host, Weather
from tests.virtual.waiting import until

if TYPE_CHECKING:
    from orchestrator.virtual.wire import Stream

LIMIT_S = 20
DATA = bytes(range(251)) * 4000  # a megabyte whose length fits no segment


async def echo(stream: Stream) -> None:
    while data := await stream.reader.read(1 << 16):
        await stream.send(data)
    stream.writer.close()


async def exchange(host: Host, data: bytes) -> bytes:
    """Send data, end, and return what comes back until the end."""
    connection = await host.dial()

    async def send() -> None:
        await connection.stream.send(data)
        connection.writer.close()

    async with asyncio.TaskGroup() as group:
        group.create_task(send())
        return await connection.stream.reader.read(-1)


@pytest.mark.parametrize(
    "weather",
    [
        Weather(),
        Weather(loss=0.001),
        Weather(loss=0.02),
        Weather(reorder=0.2),
        Weather(loss=0.01, reorder=0.1),
    ],
    ids=["fair", "loss 0.1 %", "loss 2 %", "reordered", "loss and reordered"],
)
async def test_what_is_sent_comes_back_whole(weather: Weather) -> None:
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        host = Host(echo, weather, group)
        received = await exchange(host, DATA)
        assert hashlib.sha256(received).digest() == hashlib.sha256(DATA).digest()


async def test_both_ends_forget_a_connection_that_ended() -> None:
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        host = Host(echo, Weather(), group)
        assert await exchange(host, b"hello") == b"hello"
        await until(lambda: not host.phone._connections)
    assert host.connection is not None
    assert host.connection.is_closed


async def test_a_peer_without_options_is_served() -> None:
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        host = Host(echo, Weather(), group)
        connection = await host.dial(options=Options())
        await connection.stream.send(b"x" * 5000)
        assert await connection.stream.reader.readexactly(5000) == b"x" * 5000
        connection.writer.abort()


async def test_a_reader_that_waits_for_more_than_the_buffer_gets_it() -> None:
    received: list[int] = []

    async def take_all(stream: Stream) -> None:
        received.append(len(await stream.reader.readexactly(4 * RECEIVE_BUFFER_BYTES)))
        await stream.send(b"done")

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        host = Host(take_all, Weather(), group)
        connection = await host.dial()
        await connection.stream.send(bytes(4 * RECEIVE_BUFFER_BYTES))
        assert await connection.stream.reader.readexactly(4) == b"done"
        connection.writer.abort()
    assert received == [4 * RECEIVE_BUFFER_BYTES]


async def test_a_reader_that_sleeps_closes_the_window_and_opens_it_again() -> None:
    gate = asyncio.Event()

    async def sleepy(stream: Stream) -> None:
        await gate.wait()
        total = 0
        while data := await stream.reader.read(1 << 16):
            total += len(data)
        await stream.send(str(total).encode())
        stream.writer.close()

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        host = Host(sleepy, Weather(), group)
        connection = await host.dial()
        connection.writer.write(bytes(3 * RECEIVE_BUFFER_BYTES))
        connection.writer.close()
        before = -1
        while connection.unsent_bytes != before:  # until nothing moves any more
            before = connection.unsent_bytes
            await asyncio.sleep(0.05)
        assert 0 < before < 3 * RECEIVE_BUFFER_BYTES
        gate.set()
        total = await connection.stream.reader.read(-1)
    assert int(total) == 3 * RECEIVE_BUFFER_BYTES


async def test_a_port_without_a_service_refuses() -> None:
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        host = Host(echo, Weather(), group)
        with pytest.raises(ConnectionRefusedError):
            await host.dial(port=10)


async def test_a_reset_ends_the_service() -> None:
    ended: list[BaseException] = []

    async def note_the_end(stream: Stream) -> None:
        await stream.send(b"hello")
        try:
            await stream.reader.readexactly(10)
        except OSError as error:
            ended.append(error)

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        host = Host(note_the_end, Weather(), group)
        connection = await host.dial()
        await connection.stream.send(b"half")
        assert await connection.stream.reader.readexactly(5) == b"hello"
        connection.writer.abort()
    assert isinstance(ended[0], ConnectionResetError)


async def test_a_tunnel_that_goes_away_ends_its_connections() -> None:
    async def wait(stream: Stream) -> None:
        await stream.send(b"hello")
        with pytest.raises(ConnectionResetError):
            await stream.reader.read(1)
        with pytest.raises(ConnectionResetError):
            await stream.send(b"x")

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        host = Host(wait, Weather(), group)
        connection = await host.dial()
        assert await connection.stream.reader.readexactly(5) == b"hello"
        host.phone.close()
        connection.lose(None)


async def test_a_peer_that_falls_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.virtual.tunnel.connection.FIRST_TIMEOUT_S", 0.002)
    monkeypatch.setattr("orchestrator.virtual.tunnel.connection.MAX_TIMEOUT_S", 0.004)
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        weather = Weather()
        host = Host(echo, weather, group)
        connection = await host.dial()
        await connection.stream.send(b"hello")
        assert await connection.stream.reader.readexactly(5) == b"hello"
        weather.down = True
        connection.writer.write(b"into the dark")
        with pytest.raises(ConnectionResetError, match="does not answer"):
            await connection.stream.reader.read(1)
        host.phone.close()


async def test_packets_that_are_not_for_the_phone_are_ignored() -> None:
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        host = Host(echo, Weather(), group)
        host.phone.receive(b"")
        host.phone.receive(bytes(100))
        stray = Segment(7, 9, 5, 5, Flags.ACK, 5)
        host._emit(stray)
        await asyncio.sleep(0)
        with pytest.raises(ConnectionRefusedError):
            await host.dial()  # the answer to the stray segment is a reset
