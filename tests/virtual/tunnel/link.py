"""Two ends of the TCP stack joined by a link that loses and reorders packets."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orchestrator.virtual.connections import Connections
from orchestrator.virtual.tunnel.connection import Handshake, TcpConnection
from orchestrator.virtual.tunnel.packet import (
    Flags,
    Options,
    Packet,
    Segment,
    add,
    encode_packet,
    parse_packet,
)
from orchestrator.virtual.tunnel.stack import TcpStack
from orchestrator.virtual.wire import Endpoint, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.virtual.wire import Service

HOST, PHONE = bytes(15) + b"\2", bytes(15) + b"\1"
MTU = 1500
HOST_SEQ = 2**32 - 5000  # so that the numbers wrap around early
PORT = 9


@dataclass
class Weather:
    """What happens to packets on the way."""

    loss: float = 0.0
    reorder: float = 0.0
    seed: int = 1
    down: bool = False
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def carry(self, deliver: Callable[[bytes], None], packet: bytes) -> None:
        loop = asyncio.get_running_loop()
        if self.down or self.random.random() < self.loss:
            return
        if self.random.random() < self.reorder:
            loop.call_later(0.002, deliver, packet)
        else:
            loop.call_soon(deliver, packet)


class OnePort:
    """A phone with a service on one port."""

    def __init__(self, service: Service) -> None:
        self._endpoint = Endpoint("test", service)
        self._connections = Connections()

    def endpoint(self, port: int) -> Endpoint | None:
        return self._endpoint if port == PORT else None

    async def serve(self, endpoint: Endpoint, stream: Stream) -> None:
        await self._connections.run(endpoint.serve, stream)


class Host:
    """The host's end: dials one connection, which is the same code as the phone's end."""

    def __init__(self, service: Service, weather: Weather, group: asyncio.TaskGroup) -> None:
        self._weather = weather
        self.phone = TcpStack(
            PHONE, MTU, send_packet=self._to_host, ports=OnePort(service), group=group
        )
        self.connection: TcpConnection | None = None
        self._answer: asyncio.Future[Segment] = asyncio.get_running_loop().create_future()
        self.max_mss = MTU - 60

    async def dial(self, port: int = PORT, options: Options | None = None) -> TcpConnection:
        """Open a connection; repeats the SYN as a real host does."""
        options = options or Options(mss=1440, window_shift=5, sack_permitted=True)
        syn = Segment(7, port, HOST_SEQ, 0, Flags.SYN, 0xFFFF, options=options)
        while not self._answer.done():
            self._emit(syn)
            await asyncio.wait([self._answer], timeout=0.1)
        answer = self._answer.result()
        if answer.flags & Flags.RST:
            raise ConnectionRefusedError
        handshake = Handshake(7, port, HOST_SEQ, answer.seq, answer.window, answer.options)
        self.connection = TcpConnection(self, handshake, is_open=True)
        ack = Segment(7, port, add(HOST_SEQ, 1), add(answer.seq, 1), Flags.ACK, 0xFFFF)
        self._emit(ack)
        return self.connection

    def send(self, connection: TcpConnection, segment: Segment) -> None:
        self._emit(segment)

    def established(self, connection: TcpConnection) -> None:
        raise AssertionError("the host's end is open from the start")

    def closed(self, connection: TcpConnection) -> None:
        pass

    def _emit(self, segment: Segment) -> None:
        packet = encode_packet(Packet(HOST, PHONE, segment))
        self._weather.carry(self.phone.receive, packet)

    def _to_host(self, data: bytes) -> None:
        self._weather.carry(self._receive, data)

    def _receive(self, data: bytes) -> None:
        packet = parse_packet(data)
        assert packet is not None
        if self.connection is not None and not self.connection.is_closed:
            self.connection.receive(packet.segment)
        elif not self._answer.done():
            self._answer.set_result(packet.segment)
