"""How much the library takes from a phone in one piece.

It refuses long messages of its plist services (128 MiB) and of DTX, but reads an AFC packet of
whatever length the phone announces (`services/afc.py`, `_afc_reader_loop`): a phone could fill the
host's memory. Every byte of a classic service comes through `ServiceConnection.recvall`, so the
limit is put there.
"""

from __future__ import annotations

from typing import Final

from pymobiledevice3.exceptions import ProtocolError
from pymobiledevice3.service_connection import ServiceConnection

# The longest honest one is a list of all apps or of some ten thousand files: single megabytes.
MOST_BYTES: Final = 32 * 1024**2


def install() -> None:
    """Limit every connection of this process; called when `usbmux` is imported."""
    if ServiceConnection.recvall is _recvall:
        return
    ServiceConnection.max_frame_size = MOST_BYTES
    ServiceConnection.recvall = _recvall  # type: ignore[method-assign]


_unlimited = ServiceConnection.recvall


async def _recvall(self: ServiceConnection, size: int) -> bytes:
    if size > MOST_BYTES:
        raise ProtocolError(f"the phone announces {size} bytes, over the limit of {MOST_BYTES}")
    return await _unlimited(self, size)
