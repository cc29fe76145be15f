"""usbmux and lockdown through pymobiledevice3: the address, lists, connections, sessions.

`USBMUXD_SOCKET_ADDRESS` is what every part of the library honours. Its address argument is honoured
by all that is used here: lists, Connect, and lockdown without autopair. Pairing would not be
(`save_pair_record` forgets the argument), hence autopair is off everywhere.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
from pymobiledevice3 import usbmux
from pymobiledevice3.exceptions import DeviceNotFoundError, GetProhibitedError, MissingValueError
from pymobiledevice3.lockdown import SERVICE_PORT, UsbmuxLockdownClient, create_using_usbmux
from pymobiledevice3.service_connection import ServiceConnection

from orchestrator.device.pmd3 import bounds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

bounds.install()

LABEL: Final = "fleet"


def library_address(address: str) -> str | None:
    """Return an address as the library takes it; None is the environment's or the system's."""
    return None if address == "default" else address


async def attached_device(udid: str, address: str) -> usbmux.MuxDevice:
    """Return the usbmux entry of a phone; a cable wins over the network.

    Raises:
        DeviceNotFoundError: If usbmux does not list it.
    """
    device = await usbmux.select_device(udid, usbmux_address=library_address(address))
    if device is None:
        raise DeviceNotFoundError(udid)
    return device


@asynccontextmanager
async def lockdown_session(udid: str, address: str) -> AsyncIterator[UsbmuxLockdownClient]:
    """Open a lockdown session; the phone must be paired already.

    A fresh one per operation: the library's client serialises its calls, and a cancelled call
    leaves it to reconnect at an unknown time.
    """
    client = await create_using_usbmux(
        serial=udid, label=LABEL, autopair=False, usbmux_address=library_address(address)
    )
    try:
        yield client
    finally:
        with anyio.CancelScope(shield=True):
            await client.close()


async def value_or_none(client: UsbmuxLockdownClient, domain: str | None, key: str) -> Any:  # noqa: ANN401 - a plist value
    """Return one lockdown value, or None where this iOS does not have or give it."""
    try:
        return await client.get_value(domain, key)
    except (MissingValueError, GetProhibitedError):
        return None


@asynccontextmanager
async def plain_lockdown(
    device: usbmux.MuxDevice, address: str
) -> AsyncIterator[ServiceConnection]:
    """Connect to lockdownd without a session: no TLS, no pair record, few values."""
    sock = await device.connect(SERVICE_PORT, usbmux_address=library_address(address))
    service = await ServiceConnection.from_socket(sock, mux_device=device)
    try:
        yield service
    finally:
        with anyio.CancelScope(shield=True):
            await service.close()


async def plain_values(service: ServiceConnection, domain: str | None = None) -> dict[str, Any]:
    """Return the values lockdownd gives to anybody; empty if it gives none."""
    request: dict[str, Any] = {"Label": LABEL, "Request": "GetValue"}
    if domain is not None:
        request["Domain"] = domain
    reply = await service.send_recv_plist(request)
    values = reply.get("Value")
    return values if isinstance(values, dict) else {}
