"""The way to a phone's developer services: a tunneld if it has the phone, else a tunnel of our own.

The library's own tunnel needs no root and allows one per process: one reason for keepers. It is
sought where USBMUXD_SOCKET_ADDRESS says, not where an argument would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pymobiledevice3.exceptions import TunneldConnectionError
from pymobiledevice3.remote.remote_service_discovery import RemoteServiceDiscoveryService
from pymobiledevice3.remote.userspace_tunnel import UserspaceRsdTunnel
from pymobiledevice3.tunneld.api import get_tunneld_tunnels

from orchestrator.device.discovery import normal_udid

if TYPE_CHECKING:
    from contextlib import AsyncExitStack


async def connect_rsd(
    stack: AsyncExitStack, udid: str, tunneld: str | None
) -> tuple[RemoteServiceDiscoveryService, bool]:
    """Return a connected RSD that the stack closes, and whether a tunneld leads to it."""
    address = await _tunneld_address(udid, tunneld) if tunneld is not None else None
    if address is not None:
        return await stack.enter_async_context(RemoteServiceDiscoveryService(address)), True
    tunnel = UserspaceRsdTunnel(serial=udid, autopair=False, remotepairing_fallback=False)
    return await stack.enter_async_context(tunnel), False


async def _tunneld_address(udid: str, tunneld: str) -> tuple[str, int] | None:
    """Return the phone's RSD address, None if no tunneld answers or it lacks the phone."""
    host, _, port = tunneld.rpartition(":")
    try:
        tunnels: dict[str, list[dict[str, Any]]] = await get_tunneld_tunnels((host, int(port)))
    except TunneldConnectionError:
        return None
    for known, details in tunnels.items():
        if normal_udid(known) == udid and details:
            return str(details[0]["tunnel-address"]), int(details[0]["tunnel-port"])
    return None
