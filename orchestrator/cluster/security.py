"""What Dask is told of keys and habits; the one place that sets its configuration."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import dask
from distributed.security import Security

from orchestrator.cluster.bundle import default_bundle, read_bundle

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.cluster.address import Address

# Dask's own defaults, but for these:
_SETTINGS = {
    # A host that is away is expected back: its work is not given up after three losses.
    "distributed.scheduler.allowed-failures": 1_000_000,
    "distributed.scheduler.worker-ttl": "30s",
    "distributed.scheduler.work-stealing": False,  # a phone cannot be moved
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.target": False,  # nothing large is ever kept in a worker
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.admin.low-level-log-length": 1000,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.comm.timeouts.connect": "10s",
    "distributed.comm.retry.count": 0,
}


def prepare_dask() -> None:
    """Set what holds for every member; called once per process, before Dask is used."""
    dask.config.set(_SETTINGS)
    # What a person must know is said by `fleet`; the library's own tracebacks are no remarks.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    logging.getLogger("tornado").setLevel(logging.CRITICAL)


def security_for(address: Address, certificates: Path | None) -> Security | None:
    """Return the keys for an address, None where it is loopback without TLS.

    Args:
        address: Where this member listens or connects.
        certificates: Its bundle; None for the usual folder.

    Raises:
        UsageError: If the bundle is not there or not private.
    """
    if not address.is_secure:
        return None
    bundle = read_bundle(certificates or default_bundle())
    pair = {"cert": str(bundle.certificate), "key": str(bundle.key)}
    named = {
        f"tls_{role}_{kind}": value
        for role in ("scheduler", "worker", "client")
        for kind, value in pair.items()
    }
    return Security(
        require_encryption=True, tls_ca_file=str(bundle.ca), tls_min_version=0x0303, **named
    )
