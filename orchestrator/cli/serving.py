"""Serves virtual phones in the foreground."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from orchestrator.virtual.serve import serve

if TYPE_CHECKING:
    from orchestrator.virtual.serve import FarmDescription, ServeOptions


async def serve_until_signal(options: ServeOptions, *, json: bool) -> None:
    """Serve until SIGTERM or SIGINT; never watches stdin."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    def announce(description: FarmDescription) -> None:
        if json:
            print(description.as_json(), flush=True)
            return
        print(f"export USBMUXD_SOCKET_ADDRESS={description.usbmux}")
        print(f"tunneld: {description.tunneld}")
        print(f"control: {description.control}")
        for phone in description.phones:
            print(f"{phone.name:<8} {phone.model:<18} iOS {phone.os:<6} {phone.udid}")
        print("Serving until Ctrl-C.", flush=True)

    await serve(options, announce, stop)
