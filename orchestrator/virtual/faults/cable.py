"""Faults between host and phone: cables, hubs, power, usbmuxd, Wi-Fi, tunnels."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from orchestrator.virtual.faults.base import Fault

if TYPE_CHECKING:
    from orchestrator.virtual.faults.base import Stage, Undo


class Unplug(Fault, frozen=True, tag="unplug"):
    """Pull the cable; undone, it is plugged in again."""

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102 - of the base
        await stage.farm.unplug(stage.phone)
        return lambda: stage.farm.plug_in(stage.phone)


class UnplugAtWrite(Fault, frozen=True, tag="unplug_at_write"):
    """Pull the cable when `at_byte` more bytes were written over AFC; undone, it is plugged in.

    What was written until then stays, as on a phone that acknowledged it.
    """

    at_byte: int

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        farm, phone = stage.farm, stage.phone

        def pull() -> None:
            farm.mux.detach(phone)  # before the write is answered
            farm.faults.hold(asyncio.ensure_future(farm.unplug(phone)))

        storage = phone.settings.storage
        storage.cut_after_bytes, storage.on_cut = max(0, self.at_byte), pull

        async def restore() -> None:
            storage.cut_after_bytes = storage.on_cut = None
            await farm.plug_in(phone)

        return restore


class Replug(Fault, frozen=True, tag="replug"):
    """Plug the cable in."""

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        await stage.farm.plug_in(stage.phone)
        return None


class HubLoss(Fault, frozen=True, tag="hub_loss"):
    """Take the power from a hub: this phone and the next ones vanish at once.

    Attributes:
        ports: How many phones hang on the hub, this one first.
    """

    ports: int = 4

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        first = stage.farm.phones.index(stage.phone)
        lost = stage.farm.phones[first : first + self.ports]
        for phone in lost:
            await stage.farm.unplug(phone)

        async def restore() -> None:
            for phone in lost:
                await stage.farm.plug_in(phone)

        return restore


class Reboot(Fault, frozen=True, tag="reboot"):
    """Reboot; with `stays_locked` nobody unlocks the phone then, until it is undone."""

    stays_locked: bool = False

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        await stage.farm.reboot(stage.phone, stays_locked=self.stays_locked)
        return stage.phone.machine.unlock if self.stays_locked else None


class UsbmuxHang(Fault, frozen=True, tag="usbmux_hang"):
    """Make usbmuxd take requests and answer none; concerns the whole farm."""

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        stage.farm.mux.hang()
        return stage.farm.mux.recover


class UsbmuxRestart(Fault, frozen=True, tag="usbmux_restart"):
    """End usbmuxd, and start it again when undone; concerns the whole farm."""

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        await stage.farm.stop_usbmuxd()
        return stage.farm.start_usbmuxd


class WifiDuplicate(Fault, frozen=True, tag="wifi_duplicate"):
    """List the phone a second time, as seen over Wi-Fi."""

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        stage.farm.mux.attach(stage.phone, wireless=True)
        return lambda: stage.farm.mux.lose_wireless(stage.phone)


class TunnelMoved(Fault, frozen=True, tag="tunnel_moved"):
    """Break open tunnels; the next ones have other addresses."""

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        await stage.farm.move_tunnel(stage.phone)
        return None
