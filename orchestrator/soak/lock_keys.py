"""What two runs on the same phone have equal, however each of them reaches it."""

from __future__ import annotations

import os
import socket
from typing import Final

from orchestrator.soak.locks import LockKey

USBMUX_ENVIRONMENT: Final = "USBMUXD_SOCKET_ADDRESS"


def lock_key(udid: str, alias: str, address: str, *, virtual: bool) -> LockKey:
    """Return what another run on the same phone has equal."""
    return LockKey(f"{real_address(address)} {udid}" if virtual else udid, alias)


def real_address(address: str) -> str:
    """Return what `default` stands for: two farms may hold phones of one UDID."""
    given = os.environ.get(USBMUX_ENVIRONMENT, address) if address == "default" else address
    host, separator, port = given.rpartition(":")
    if not separator:
        return given
    try:
        return f"{socket.gethostbyname(host)}:{int(port)}"  # localhost is 127.0.0.1
    except (OSError, ValueError):
        return given
