"""The scheduler of a cluster: Dask's own, without its web server, that refuses other versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distributed import Scheduler

import orchestrator
from orchestrator.cluster.quiet import Unserved
from orchestrator.domain.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    import anyio
    from distributed.security import Security

    from orchestrator.cluster.address import Address


class FleetScheduler(Unserved, Scheduler):  # type: ignore[misc]  # Dask is not typed
    """Dask's scheduler with one port."""


def hello(name: str, version: str) -> dict[str, Any]:
    """Answer an agent that wants to join: with a refusal if its version is another one."""
    ours = orchestrator.__version__
    if version == ours:
        return {"version": ours}
    refusal = f"agent {name} has fleet {version}, the scheduler has fleet {ours}"
    return {"version": ours, "refusal": refusal}


async def serve_scheduler(
    listen: Address, security: Security | None, announce: Callable[[str], None], stop: anyio.Event
) -> None:
    """Serve until `stop` is set. It keeps nothing: one that is started anew knows all again.

    Args:
        listen: Its one port.
        security: Its keys; None on loopback.
        announce: Told the address once it listens.
        stop: Ends it.

    Raises:
        UsageError: If the port is taken.
    """
    try:
        scheduler = FleetScheduler(
            host=listen.host,
            port=listen.port,
            protocol=listen.protocol,
            security=security,
            dashboard=False,
        )
        scheduler.handlers["fleet_hello"] = hello
        await scheduler
    except (OSError, RuntimeError) as error:
        raise UsageError(f"the scheduler cannot listen on {listen}: {error}") from error
    try:
        announce(scheduler.address)
        await stop.wait()
    finally:
        await scheduler.close(reason="stopped")
