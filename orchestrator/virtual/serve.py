"""Serves virtual phones until told to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from orchestrator.virtual.farm import FarmDescription, ServeOptions, running_farm
from orchestrator.virtual.identity import default_phones, phones_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FarmDescription", "ServeOptions", "default_phones", "phones_of", "serve"]


class StopEvent(Protocol):
    """An `asyncio.Event` or an `anyio.Event`."""

    async def wait(self) -> object:
        """Return once it is set."""


async def serve(
    options: ServeOptions, on_ready: Callable[[FarmDescription], None], stop: StopEvent
) -> None:
    """Run a farm until `stop` is set; then every app and connection has ended.

    Listens on 127.0.0.1 only, but to every user of this machine, as usbmuxd does: whoever can
    connect can install and launch programs as the user who serves.

    Args:
        options: What farm.
        on_ready: Called once, when hosts can connect.
        stop: Ends the farm.

    Raises:
        ValueError: If a model or a version of iOS is unknown.
        OSError: If a port is taken.
    """
    async with running_farm(options) as farm:
        on_ready(farm.describe())
        await stop.wait()
