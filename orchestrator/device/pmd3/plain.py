"""Lockdown without a session: no TLS, no pair record, few values; works before pairing too.

Spoken here in a few lines: the library's own client loads a terminal toolkit, an HTTP client and
DTX, which together take longer than fifty phones take to answer.
"""

from __future__ import annotations

import asyncio
import plistlib
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
from pymobiledevice3.exceptions import ProtocolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pymobiledevice3.usbmux import MuxDevice

LABEL: Final = "fleet"
LOCKDOWN_PORT: Final = 62078
# All values of one domain; honest ones have some kilobytes.
MOST_BYTES: Final = 4 * 1024**2
_CLOSE_LIMIT_S: Final = 1.0
_LENGTH: Final = struct.Struct(">I")


def library_address(address: str) -> str | None:
    """Return an address as the library takes it; None is the environment's or the system's."""
    return None if address == "default" else address


class PlainLockdown:
    """One connection to lockdownd."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def values(self, domain: str | None = None) -> dict[str, Any]:
        """Return the values lockdownd gives to anybody; empty if it gives none.

        Raises:
            ProtocolError: If the answer is longer than any honest one, or no plist.
        """
        request: dict[str, Any] = {"Label": LABEL, "Request": "GetValue"}
        if domain is not None:
            request["Domain"] = domain
        message = plistlib.dumps(request)
        self._writer.write(_LENGTH.pack(len(message)) + message)
        await self._writer.drain()
        (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
        if length > MOST_BYTES:
            raise ProtocolError(f"the phone announces {length} bytes, over {MOST_BYTES}")
        reply = plistlib.loads(await self._reader.readexactly(length))
        values = reply.get("Value") if isinstance(reply, dict) else None
        return values if isinstance(values, dict) else {}


@asynccontextmanager
async def plain_lockdown(device: MuxDevice, address: str) -> AsyncIterator[PlainLockdown]:
    """Connect to a phone's lockdownd through usbmux."""
    sock = await device.connect(LOCKDOWN_PORT, usbmux_address=library_address(address))
    sock.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=sock)
    try:
        yield PlainLockdown(reader, writer)
    finally:
        writer.close()
        with anyio.move_on_after(_CLOSE_LIMIT_S, shield=True):
            try:
                await writer.wait_closed()
            except OSError:
                writer.transport.abort()
