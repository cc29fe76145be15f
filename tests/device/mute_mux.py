"""A usbmuxd whose one phone accepts connections and never says a word."""

from __future__ import annotations

import asyncio
import plistlib
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MUTE_UDID = "00008130-000000000000DEAD"


@asynccontextmanager
async def mute_usbmuxd() -> AsyncIterator[str]:
    """Serve for the length of the block; gives host:port."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield f"{host}:{port}"


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            length, _, _, tag = struct.unpack("<IIII", await reader.readexactly(16))
            request = plistlib.loads(await reader.readexactly(length - 16))
            body = plistlib.dumps(_answer(request["MessageType"]))
            writer.write(struct.pack("<IIII", 16 + len(body), 1, 8, tag) + body)
            if request["MessageType"] == "Connect":
                await reader.read()  # until the other side gives up
                return
    except (asyncio.IncompleteReadError, ConnectionError):
        return
    finally:
        writer.close()


def _answer(kind: str) -> dict[str, object]:
    properties = {"SerialNumber": MUTE_UDID, "ConnectionType": "USB"}
    attached = {"MessageType": "Attached", "DeviceID": 1, "Properties": properties}
    answers: dict[str, dict[str, object]] = {
        "ReadBUID": {"BUID": "buid"},
        "ListDevices": {"DeviceList": [attached]},
    }
    return answers.get(kind, {"MessageType": "Result", "Number": 0})
