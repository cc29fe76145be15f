"""The phone's end of one tunnel: hands packets to connections and opens new ones."""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, Final, Protocol

from orchestrator.virtual.tunnel.connection import Handshake, TcpConnection
from orchestrator.virtual.tunnel.packet import (
    IPV6_HEADER_BYTES,
    TCP_HEADER_BYTES,
    Flags,
    Packet,
    Segment,
    add,
    encode_packet,
    parse_packet,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from orchestrator.virtual.wire import Endpoint, Stream

_log: Final = logging.getLogger(__name__)

_Flow = tuple[bytes, int, int]  # the peer's address and port, our port


class PortOpener(Protocol):
    """What stands behind the tunnel's ports."""

    def endpoint(self, port: int) -> Endpoint | None:
        """Return what listens on a port, or None."""

    async def serve(self, endpoint: Endpoint, stream: Stream) -> None:
        """Serve one connection until it ends."""


class TcpStack:
    """Accepts TCP connections on one IPv6 address.

    Use it in a `TaskGroup`, which holds the task of each connection.
    """

    def __init__(
        self,
        address: bytes,
        mtu: int,
        *,
        send_packet: Callable[[bytes], None],
        ports: PortOpener,
        group: asyncio.TaskGroup,
    ) -> None:
        self._address, self._mtu = address, mtu
        self._send_packet, self._ports, self._group = send_packet, ports, group
        self._connections: dict[_Flow, TcpConnection] = {}
        self._endpoints: dict[_Flow, Endpoint] = {}
        self._peers: dict[TcpConnection, _Flow] = {}

    @property
    def max_mss(self) -> int:
        """Largest segment that fits the tunnel, in bytes."""
        return self._mtu - IPV6_HEADER_BYTES - TCP_HEADER_BYTES

    def receive(self, data: bytes) -> None:
        """Take one packet from the host; what is not TCP to our address is ignored."""
        packet = parse_packet(data)
        if packet is None or packet.target != self._address:
            return
        segment = packet.segment
        flow = (packet.source, segment.source_port, segment.target_port)
        connection = self._connections.get(flow)
        if connection is not None:
            connection.receive(segment)
        elif segment.flags & Flags.SYN and not segment.flags & Flags.ACK:
            self._open(flow, segment)
        elif not segment.flags & Flags.RST:
            self._refuse(flow, segment)

    def send(self, connection: TcpConnection, segment: Segment) -> None:
        """Send one segment (called by the connection)."""
        self._emit(self._peers[connection][0], segment)

    def established(self, connection: TcpConnection) -> None:
        """Start the service (called by the connection)."""
        endpoint = self._endpoints[self._peers[connection]]
        self._group.create_task(self._ports.serve(endpoint, connection.stream))

    def closed(self, connection: TcpConnection) -> None:
        """Forget a connection (called by the connection)."""
        flow = self._peers.pop(connection)
        del self._connections[flow]
        del self._endpoints[flow]

    def close(self) -> None:
        """End every connection; the tunnel is gone."""
        for connection in list(self._peers):
            connection.lose(ConnectionResetError("the tunnel is gone"))

    def _open(self, flow: _Flow, syn: Segment) -> None:
        endpoint = self._ports.endpoint(syn.target_port)
        if endpoint is None:
            _log.debug("no service on port %d", syn.target_port)
            self._refuse(flow, syn)
            return
        handshake = Handshake(
            own_port=syn.target_port,
            peer_port=syn.source_port,
            own_seq=secrets.randbits(32),
            peer_seq=syn.seq,
            peer_window=syn.window,
            peer_options=syn.options,
        )
        connection = TcpConnection(self, handshake)
        self._connections[flow] = connection
        self._endpoints[flow] = endpoint
        self._peers[connection] = flow
        connection.answer_syn()

    def _refuse(self, flow: _Flow, segment: Segment) -> None:
        if segment.flags & Flags.ACK:
            seq, ack, flags = segment.ack, 0, Flags.RST
        else:
            length = len(segment.data) + bool(segment.flags & Flags.SYN)
            seq, ack, flags = 0, add(segment.seq, length), Flags.RST | Flags.ACK
        answer = Segment(segment.target_port, segment.source_port, seq, ack, flags, 0)
        self._emit(flow[0], answer)

    def _emit(self, peer: bytes, segment: Segment) -> None:
        # One write per packet: pymobiledevice3 loses its speed when packets arrive joined.
        self._send_packet(encode_packet(Packet(self._address, peer, segment)))
