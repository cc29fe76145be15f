"""Hostile messages to every service of a virtual phone: in memory, and over its sockets."""

from __future__ import annotations

import asyncio
import plistlib
import random
import socket
import ssl
import struct
import time
from typing import TYPE_CHECKING, Any

import pytest
import requests
from pymobiledevice3.remote.remote_service_discovery import RemoteServiceDiscoveryService

from orchestrator.virtual.wire import parse_plist
from tests.fuzz.driver import fuzz, resident_mib_of
from tests.fuzz.phones import TARGETS
from tests.virtual.child import child_farm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

GROWTH_LIMIT_MIB = 5.0
OVER_SOCKETS = 2000
LIMIT_S = 5.0


@pytest.mark.parametrize("name", TARGETS)
def test_a_thousand_hostile_inputs_crash_nothing_and_touch_nothing_outside(name: str) -> None:
    found = fuzz(TARGETS[name], 1000, seed=1)
    assert (found.crashes, found.hangs) == (0, 0), found.shown
    assert found.growth_mib <= GROWTH_LIMIT_MIB


@pytest.mark.deep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", TARGETS)
def test_a_hundred_thousand_hostile_inputs_crash_nothing(name: str) -> None:
    found = fuzz(TARGETS[name], 100_000, seed=2)
    assert (found.crashes, found.hangs) == (0, 0), found.shown
    assert found.growth_mib <= GROWTH_LIMIT_MIB


class Peer:
    """Opens plain connections to the services of one phone of a farm in a child process."""

    def __init__(self, farm: dict[str, Any], folder: Path) -> None:
        host, _, port = farm["usbmux"].partition(":")
        self._usbmux = (host, int(port))
        self.udid: str = farm["phones"][0]["udid"]
        self._folder, self._tunneld = folder, farm["tunneld"]

    def usbmux(self) -> socket.socket:
        return socket.create_connection(self._usbmux, timeout=LIMIT_S)

    def connect(self, port: int) -> socket.socket:
        """Connect to a port of the phone."""
        connection = self.usbmux()
        message = {"MessageType": "Connect", "DeviceID": 1, "PortNumber": socket.htons(port)}
        connection.sendall(mux_frame(message))
        length = struct.unpack("<I", received(connection, 16)[:4])[0]
        assert parse_plist(received(connection, length - 16))["Number"] == 0
        return connection

    def service(self, name: str) -> Callable[[], socket.socket]:
        """Return what connects to a lockdown service; it is started once."""
        control = self._secured(self._session())
        control.sendall(plist_frame({"Request": "StartService", "Service": name}))
        port = read_plist(control)["Port"]
        control.close()
        return lambda: self._secured(self.connect(port))

    def tunnel_port(self, name: str) -> Callable[[], socket.socket]:
        """Return what connects to a service of the tunnel, as tunneld offers it on loopback."""
        reply = requests.get(f"http://{self._tunneld}/", timeout=LIMIT_S).json()
        rsd_port = reply[self.udid][0]["tunnel-port"]
        port = rsd_port if name == "rsd" else asyncio.run(port_of(rsd_port, name))
        return lambda: socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)

    def _session(self) -> socket.socket:
        record = parse_plist((self._folder / "lockdown" / f"{self.udid}.plist").read_bytes())
        control = self.connect(62078)
        request = {"Request": "StartSession", "HostID": record["HostID"]}
        control.sendall(plist_frame({**request, "SystemBUID": record["SystemBUID"]}))
        assert read_plist(control)["EnableSessionSSL"] is True
        certificate = self._folder / "host.pem"
        certificate.write_bytes(record["HostPrivateKey"] + record["HostCertificate"])
        return control

    def _secured(self, connection: socket.socket) -> ssl.SSLSocket:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(self._folder / "host.pem")
        return context.wrap_socket(connection)


async def port_of(rsd_port: int, name: str) -> int:
    async with RemoteServiceDiscoveryService(("127.0.0.1", rsd_port)) as remote:
        return remote.get_service_port(name)


def plist_frame(document: dict[str, Any]) -> bytes:
    body = plistlib.dumps(document)
    return struct.pack(">I", len(body)) + body


def mux_frame(document: dict[str, Any]) -> bytes:
    body = plist_frame(document)[4:]
    return struct.pack("<IIII", 16 + len(body), 1, 8, 1) + body


def read_plist(connection: socket.socket) -> dict[str, Any]:
    (length,) = struct.unpack(">I", received(connection, 4))
    return parse_plist(received(connection, length))


def received(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        assert piece, "the phone closed the connection"
        data += piece
    return data


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Peer, int]]:
    folder = tmp_path_factory.mktemp("farm")
    with child_farm("--models", "iPhone 16", "--folder", str(folder)) as (process, farm):
        yield Peer(farm, folder), process.pid


SERVICES = {
    "afc": "com.apple.afc",
    "install": "com.apple.mobile.installation_proxy",
    "cdtunnel": "com.apple.internal.devicecompute.CoreDeviceProxy",
}
TUNNEL_SERVICES = {
    "dtx": "com.apple.instruments.dtservicehub",
    "http2": "com.apple.coredevice.appservice",
    "http2@rsd": "rsd",
}


@pytest.mark.deep
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["usbmux", "lockdown", *SERVICES, *TUNNEL_SERVICES])
def test_two_thousand_hostile_inputs_over_sockets_leave_the_phone_well(
    served: tuple[Peer, int], name: str
) -> None:
    peer, pid = served
    opened = opener(peer, name)
    make, before_mib = TARGETS[name.split("@", maxsplit=1)[0]].make, 0.0
    for number in range(OVER_SOCKETS):
        throw(opened, make(random.Random(f"3/{number}")))
        if number == OVER_SOCKETS // 10:
            before_mib = resident_mib_of(pid)
    assert resident_mib_of(pid) - before_mib <= GROWTH_LIMIT_MIB
    control = peer.connect(62078)
    control.sendall(plist_frame({"Request": "QueryType"}))
    assert read_plist(control)["Type"] == "com.apple.mobile.lockdown"
    control.close()


def opener(peer: Peer, name: str) -> Callable[[], socket.socket]:
    if name in SERVICES:
        return peer.service(SERVICES[name])
    if name in TUNNEL_SERVICES:
        return peer.tunnel_port(TUNNEL_SERVICES[name])
    return peer.usbmux if name == "usbmux" else lambda: peer.connect(62078)


def throw(opened: Callable[[], socket.socket], content: bytes) -> None:
    """Send an input, end the sending half, and read until the phone has closed, in time."""
    began_s = time.monotonic()
    with opened() as connection:
        try:
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                assert time.monotonic() - began_s < LIMIT_S, "the phone goes on and on"
        except (ConnectionError, ssl.SSLError):
            return  # closed while we were sending
