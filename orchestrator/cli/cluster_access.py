"""How commands name a cluster: `--cluster URL`, keys from the bundle of this member."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from orchestrator.cluster.address import Address
    from orchestrator.cluster.connection import Connection

CLUSTER_HELP: Final = "Scheduler of a cluster, tls://HOST:PORT; needs the extra `cluster`."
ClusterOption = Annotated[str | None, typer.Option("--cluster", help=CLUSTER_HELP)]
CertificatesOption = Annotated[
    Path | None, typer.Option("--certificates", help="This member's bundle of `cluster init`.")
]


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """A cluster and the keys to it."""

    address: Address
    security: Any  # Dask's keys; None on loopback

    def connected(self) -> AbstractAsyncContextManager[Connection]:
        """Connect until the block ends."""
        from orchestrator.cluster.connection import connected

        return connected(self.address, self.security)


def cluster_access(url: str, certificates: Path | None, *, option: str) -> ClusterAccess:
    """Read an address and its keys; the first import of Dask in a command.

    Raises:
        UsageError: If the extra, the address or the keys are wrong.
    """
    from orchestrator.cluster.address import parse_address
    from orchestrator.cluster.extra import require_cluster

    require_cluster()
    address = parse_address(url, option=option)
    from orchestrator.cluster.security import prepare_dask, security_for

    prepare_dask()
    return ClusterAccess(address, security_for(address, certificates))
