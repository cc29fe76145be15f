"""A certificate bundle: the folder a member of a cluster shows its identity from.

`ca.pem`, `cert.pem`, `key.pem` (0600) and `cluster.json` in a folder that only its user can enter.
`fleet cluster init` makes one for each member; whoever holds one can run programs on every agent.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.domain.errors import UsageError
from orchestrator.soak.state_folder import state_folder

if TYPE_CHECKING:
    from pathlib import Path

CA: Final = "ca.pem"
CERTIFICATE: Final = "cert.pem"
KEY: Final = "key.pem"
CONFIG: Final = "cluster.json"
_REMEDY: Final = "`fleet cluster init` makes bundles; copy this member's to the folder"


class ClusterConfig(msgspec.Struct, frozen=True):
    """`cluster.json`: not secret."""

    scheduler: str  # tls://host:port
    member: str  # `scheduler`, `client`, or an agent's name


def default_bundle() -> Path:
    """Return where a member's bundle is looked for: `cluster` in the state folder."""
    return state_folder() / "cluster"


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files of one member."""

    folder: Path
    config: ClusterConfig

    @property
    def ca(self) -> Path:
        """Who vouches for all members."""
        return self.folder / CA

    @property
    def certificate(self) -> Path:
        """Who this member is."""
        return self.folder / CERTIFICATE

    @property
    def key(self) -> Path:
        """The secret."""
        return self.folder / KEY


def read_bundle(folder: Path) -> Bundle:
    """Return a bundle.

    Raises:
        UsageError: If a file is missing or damaged, or others can read the key.
    """
    for name in (CA, CERTIFICATE, KEY, CONFIG):
        if not (folder / name).is_file():
            raise UsageError(f"{folder} is no certificate bundle: no {name}", remedy=_REMEDY)
    if stat.S_IMODE((folder / KEY).stat().st_mode) & 0o077:
        raise UsageError(
            f"{folder / KEY} is open to other users", remedy=f"Run `chmod 600 {folder / KEY}`"
        )
    try:
        config = msgspec.json.decode((folder / CONFIG).read_bytes(), type=ClusterConfig)
    except msgspec.DecodeError as error:
        raise UsageError(f"{folder / CONFIG} cannot be read: {error}", remedy=_REMEDY) from error
    return Bundle(folder, config)
