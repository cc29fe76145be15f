"""One developer session per phone: two to one phone fail in practice.

The broker starts a keeper and attaches to it. That there is only one is held by the keeper's lock,
so it also holds between two orchestrators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.device.keeper.client import KeeperClient
from orchestrator.device.keeper.lease import DEFAULT_LEASE_S
from orchestrator.device.keeper.place import default_root, is_held, place_of
from orchestrator.device.keeper.start import KeeperOptions

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.device.keeper.start import KeeperStarter
    from orchestrator.domain.deadline import Deadline
    from orchestrator.domain.phone import Phone

DEFAULT_TUNNELD: Final = "127.0.0.1:49151"  # asked on real phones; most hosts run none


class KeeperBroker:
    """Opens and adopts sessions.

    Args:
        starter: Starts the processes.
        root: Folder of the keepers' folders; the user's own by default.
        lease_s: How long a keeper lives without a client.
        die_with_parent: For phones that the run started itself.
        tunneld: Address of a tunneld, host:port; None for the usual one, on real phones.
    """

    def __init__(
        self,
        starter: KeeperStarter,
        *,
        root: Path | None = None,
        lease_s: float = DEFAULT_LEASE_S,
        die_with_parent: bool = False,
        tunneld: str | None = None,
    ) -> None:
        self._starter = starter
        self._root = root or default_root()
        self._lease_s = lease_s
        self._die_with_parent = die_with_parent
        self._tunneld = tunneld

    async def open(self, phone: Phone, address: str, *, deadline: Deadline) -> KeeperClient:
        """Start a keeper and open its session.

        Raises:
            DeviceError: If another keeper has the phone, or the phone refuses.
        """
        options = KeeperOptions(
            udid=phone.udid,
            alias=phone.alias,
            address=address,
            root=str(self._root),
            lease_s=self._lease_s,
            tunneld=self._tunneld or (None if phone.virtual else DEFAULT_TUNNELD),
            die_with_parent=self._die_with_parent,
        )
        await self._starter.start(options, deadline=deadline)
        place = place_of(self._root, phone.udid, address)
        return await KeeperClient.attach(phone.alias, place, deadline=deadline)

    async def adopt(self, phone: Phone, address: str, *, deadline: Deadline) -> KeeperClient | None:
        """Attach to a keeper that lives; None if there is none."""
        place = place_of(self._root, phone.udid, address)
        if not is_held(place):
            return None
        return await KeeperClient.attach(phone.alias, place, deadline=deadline)
