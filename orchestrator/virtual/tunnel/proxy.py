"""com.apple.internal.devicecompute.CoreDeviceProxy: the tunnel that needs no root."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import TYPE_CHECKING, Any, Final

from orchestrator.virtual.tunnel.packet import IPV6_HEADER_BYTES, payload_length
from orchestrator.virtual.tunnel.stack import TcpStack
from orchestrator.virtual.wire import ProtocolError

if TYPE_CHECKING:
    from orchestrator.virtual.tunnel.stack import PortOpener
    from orchestrator.virtual.wire import Stream

_MAGIC: Final = b"CDTunnel"
_MAX_MTU: Final = 16_000
_MIN_MTU: Final = 1280  # IPv6's
_NETMASK: Final = "ffff:ffff:ffff:ffff::"


class CoreDeviceProxy:
    """Shakes hands as CDTunnel, then carries bare IPv6 packets both ways."""

    def __init__(self, index: int, rsd_port: int, ports: PortOpener) -> None:
        self._index, self._moves = index, 0
        self._rsd_port, self._ports = rsd_port, ports

    @property
    def _prefix(self) -> str:
        moved = f":{self._moves:x}" if self._moves else ""
        return f"fd7a:{self._index + 1:x}{moved}:"

    @property
    def _device(self) -> str:
        return f"{self._prefix}:1"

    @property
    def _host(self) -> str:
        return f"{self._prefix}:2"

    def move(self) -> None:
        """Have other addresses from the next tunnel on."""
        self._moves += 1

    async def serve(self, stream: Stream) -> None:
        """Serve one tunnel until the host leaves."""
        mtu = await self._shake_hands(stream)
        address = socket.inet_pton(socket.AF_INET6, self._device)
        async with asyncio.TaskGroup() as group:
            stack = TcpStack(
                address, mtu, send_packet=stream.writer.write, ports=self._ports, group=group
            )
            try:
                while True:
                    header = await stream.reader.readexactly(IPV6_HEADER_BYTES)
                    body = await stream.reader.readexactly(payload_length(header))
                    stack.receive(header + body)
                    await stream.writer.drain()
            finally:
                stack.close()

    async def _shake_hands(self, stream: Stream) -> int:
        """Return the MTU that both ends agreed on."""
        head = await stream.reader.readexactly(len(_MAGIC) + 2)
        if not head.startswith(_MAGIC):
            raise ProtocolError("not a CDTunnel handshake")
        (length,) = struct.unpack(">H", head[len(_MAGIC) :])
        request = _parse_request(await stream.reader.readexactly(length))
        mtu = max(_MIN_MTU, min(_MAX_MTU, request))
        answer = {
            "type": "serverHandshakeResponse",
            "clientParameters": {"mtu": mtu, "address": self._host, "netmask": _NETMASK},
            "serverAddress": self._device,
            "serverRSDPort": self._rsd_port,
        }
        body = json.dumps(answer).encode()
        await stream.send(_MAGIC + struct.pack(">H", len(body)) + body)
        return mtu


def _parse_request(body: bytes) -> int:
    try:
        request: Any = json.loads(body)
        return int(request.get("mtu", _MIN_MTU))
    except (ValueError, TypeError, AttributeError) as error:
        raise ProtocolError(f"not a handshake request: {error}") from error
