"""usbmux and lockdown through pymobiledevice3: the address, lists, connections, sessions.

`USBMUXD_SOCKET_ADDRESS` is what every part of the library honours. Its address argument is honoured
by all that is used here: lists, Connect, and lockdown without autopair. Pairing would not be
(`save_pair_record` forgets the argument), hence autopair is off everywhere.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from pymobiledevice3 import usbmux
from pymobiledevice3.exceptions import DeviceNotFoundError, GetProhibitedError, MissingValueError
from pymobiledevice3.lockdown import UsbmuxLockdownClient, create_using_usbmux

from orchestrator.device.pmd3 import bounds
from orchestrator.device.pmd3.plain import LABEL, library_address

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

bounds.install()


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
