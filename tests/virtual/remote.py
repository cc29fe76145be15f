"""Reaches the services of the tunnel as through a running tunneld."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import requests
from pymobiledevice3.remote.remote_service_discovery import RemoteServiceDiscoveryService

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from orchestrator.virtual.farm import Farm
    from orchestrator.virtual.phone import VirtualPhone


@asynccontextmanager
async def connected(
    farm: Farm, phone: VirtualPhone
) -> AsyncIterator[RemoteServiceDiscoveryService]:
    """Connect to the phone's table of services."""
    host, _, port = farm.describe().tunneld.partition(":")
    (entry,) = (await asyncio.to_thread(ask_tunneld, host, int(port)))[phone.udid]
    address = (entry["tunnel-address"], entry["tunnel-port"])
    async with RemoteServiceDiscoveryService(address) as remote:
        yield remote


def ask_tunneld(host: str, port: int) -> dict[str, list[dict[str, Any]]]:
    """Ask as the client does: with a blocking call, so not in the loop that answers."""
    reply = requests.get(f"http://{host}:{port}/", timeout=5)
    reply.raise_for_status()
    document: dict[str, list[dict[str, Any]]] = reply.json()
    return document
