"""Faults of trust and locks: what a person at the phone did, or did not do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from orchestrator.virtual.faults.base import Fault
from orchestrator.virtual.settings import TrustAnswer

if TYPE_CHECKING:
    from orchestrator.virtual.faults.base import Stage, Undo

_ANSWERS: Final = {
    "pending": TrustAnswer.PENDING,
    "denied": TrustAnswer.DENIED,
    "locked": TrustAnswer.LOCKED,
}


class Lock(Fault, frozen=True, tag="lock"):
    """Lock the screen: launches are refused, apps are suspended a little later."""

    suspend_after_s: float = 5.0

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102 - of the base
        stage.phone.machine.lock(self.suspend_after_s)
        return stage.phone.machine.unlock


class Unlock(Fault, frozen=True, tag="unlock"):
    """Unlock; suspended apps go on."""

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        stage.phone.machine.unlock()
        return None


class PairingLost(Fault, frozen=True, tag="pairing_lost"):
    """Forget every host; the host's pair records are worth nothing until it pairs again."""

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        hosts = stage.phone.pairings.hosts()
        stage.phone.pairings.forget_all()
        return lambda: stage.phone.pairings.restore(hosts)


class Trust(Fault, frozen=True, tag="trust"):
    """Forget every host, and answer the next that asks with `pending`, `denied` or `locked`."""

    answer: Literal["pending", "denied", "locked"]

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        settings, pairings = stage.phone.settings, stage.phone.pairings
        hosts = pairings.hosts()
        pairings.forget_all()
        settings.trust = _ANSWERS[self.answer]

        def restore() -> None:
            settings.trust = TrustAnswer.TRUST
            pairings.restore(hosts)

        return restore


class DeveloperModeOff(Fault, frozen=True, tag="developer_mode_off"):
    """Switch Developer Mode off: developer services are gone."""

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        settings = stage.phone.settings
        settings.developer_mode = False

        def restore() -> None:
            settings.developer_mode = True

        return restore


class DdiUnmounted(Fault, frozen=True, tag="ddi_unmounted"):
    """Unmount the developer disk image: developer services are gone until it is mounted."""

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        settings = stage.phone.settings
        settings.image_mounted = False

        def restore() -> None:
            settings.image_mounted = True

        return restore
