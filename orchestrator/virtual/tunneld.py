"""A stand-in for `pymobiledevice3 remote tunneld`: phones' services on loopback, and their list.

There is no tunnel: each service of a phone listens on a port of its own on 127.0.0.1. `GET /`
lists the phones as tunneld does: `{udid: [{tunnel-address, tunnel-port, interface}]}`.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from orchestrator.virtual.connections import LOOPBACK, Listener
from orchestrator.virtual.rsd import ServiceDirectory
from orchestrator.virtual.wire import Endpoint, ProtocolError

if TYPE_CHECKING:
    from orchestrator.virtual.phone import VirtualPhone
    from orchestrator.virtual.wire import Service, Stream

_MAX_REQUEST_BYTES: Final = 64 << 10


@dataclass(slots=True)
class _Presence:
    """The loopback ports of one phone."""

    phone: VirtualPhone
    listeners: dict[str, Listener] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    rsd_port: int = 0
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def port_of(self, name: str) -> int:
        """Return where a service listens; it begins to when somebody asks for the table."""
        async with self.opening:  # two hosts may ask at once
            if name not in self.ports:
                self.ports[name] = await self.listen(self.phone.remote_services[name].endpoint)
        return self.ports[name]

    async def listen(self, endpoint: Endpoint) -> int:
        """Open a port for a service and return it."""
        listener = self.listeners[endpoint.name] = Listener(_serving(self.phone, endpoint))
        return await listener.open()


class Tunneld:
    """The list of phones and their loopback ports."""

    def __init__(self) -> None:
        self._presences: dict[str, _Presence] = {}
        self._listener = Listener(self.serve)

    async def open(self, port: int) -> int:
        """Listen for HTTP and return the port; 0 takes any free one."""
        return await self._listener.open(port)

    async def close(self) -> None:
        """Stop listening, for every phone too."""
        await self._listener.close()
        for presence in list(self._presences.values()):
            await self.remove(presence.phone)

    async def add(self, phone: VirtualPhone) -> None:
        """Open the ports of a phone and list it; one without a tunnel (before iOS 17) is not."""
        if not phone.remote_services:
            return
        presence = _Presence(phone)
        directory = ServiceDirectory(
            phone.identity,
            phone.offered_services,
            presence.port_of,
            lambda: phone.machine.boot_time_s,
        )
        presence.rsd_port = await presence.listen(Endpoint("rsd", directory.serve))
        self._presences[phone.udid] = presence

    async def remove(self, phone: VirtualPhone) -> None:
        """Close the ports of a phone and list it no more."""
        presence = self._presences.pop(phone.udid, None)
        if presence is not None:
            for listener in presence.listeners.values():
                await listener.close()

    async def serve(self, stream: Stream) -> None:
        """Answer one HTTP request."""
        path = await _read_request_path(stream.reader)
        if path == "/":
            await stream.send(_response("200 OK", self._list()))
        elif path == "/hello":
            await stream.send(_response("200 OK", {"message": "Hello, I'm alive"}))
        else:
            await stream.send(_response("404 Not Found", {"detail": "Not Found"}))

    def _list(self) -> dict[str, Any]:
        return {
            udid: [
                {
                    "tunnel-address": LOOPBACK,
                    "tunnel-port": presence.rsd_port,
                    "interface": f"virtual-{presence.phone.identity.name}",
                }
            ]
            for udid, presence in self._presences.items()
        }


def _serving(phone: VirtualPhone, endpoint: Endpoint) -> Service:
    async def serve(stream: Stream) -> None:
        await phone.serve(endpoint, stream)

    return serve


async def _read_request_path(reader: asyncio.StreamReader) -> str:
    """Return the path of a GET request; an empty one for other methods.

    Raises:
        ProtocolError: If it is no HTTP.
    """
    first, *_ = (await reader.readline()).split(b"\r\n")
    received = len(first)
    while (line := await reader.readline()) not in {b"\r\n", b"\n", b""}:
        received += len(line)
        if received > _MAX_REQUEST_BYTES:
            raise ProtocolError("the request is too long")
    method, _, rest = first.decode("latin-1").partition(" ")
    path, _, version = rest.partition(" ")
    if not version.startswith("HTTP/1."):
        raise ProtocolError("not HTTP")
    return path.partition("?")[0] if method == "GET" else ""


def _response(status: str, document: dict[str, Any]) -> bytes:
    body = json.dumps(document).encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
