"""The phones of one host, kept current: the usbmuxds' lists are read every second."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.cluster.documents import AgentPhone
from orchestrator.device.discovery import Expected, UsbmuxSource, discover
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError, FleetError
from orchestrator.soak.ledger import Ledger
from orchestrator.soak.lock_keys import lock_key
from orchestrator.soak.locks import holder_of, lock_folder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from orchestrator.config.model import FleetConfig
    from orchestrator.device.discovery import Browser, Discovery
    from orchestrator.domain.phone import Phone

LIST_PERIOD_S: Final = 1.0
LIST_LIMIT_S: Final = 5.0
DISCOVERY_LIMIT_S: Final = 30.0
# A phone that did not say who it is, a locked one say, is asked again.
ASK_AGAIN_S: Final = 15.0


@dataclass(slots=True)
class AttachedPhones:
    """What this host holds now."""

    config: FleetConfig
    browser: Browser
    remarks: tuple[str, ...] = ()
    _phones: tuple[Phone, ...] = ()
    _listed: frozenset[tuple[str, str, int]] | None = None
    _asked_s: float = field(default=0.0)

    def udids(self) -> frozenset[str]:
        """Return who is attached and said who it is."""
        return frozenset(phone.udid for phone in self._phones)

    def described(self) -> list[AgentPhone]:
        """Return the phones with what keeps a run from them now; reads small files."""
        try:
            quarantined = Ledger().quarantined(time.time())
        except FleetError:
            quarantined = {}
        return [
            AgentPhone(
                udid=phone.udid,
                alias=phone.alias,
                name=phone.name,
                product_type=phone.product_type,
                os=phone.os,
                build=phone.build,
                source=phone.source,
                virtual=phone.virtual,
                tags=list(phone.tags),
                quarantine=quarantined[phone.udid].reason if phone.udid in quarantined else None,
                held_by=self._holder(phone),
            )
            for phone in self._phones
        ]

    async def watch(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Look every second, and tell when a phone came or went; never returns by itself."""
        while True:
            if await self.look():
                await changed()
            await anyio.sleep(LIST_PERIOD_S)

    async def look(self) -> bool:
        """Read the lists; ask the phones who they are where a list changed. True if any did."""
        listed = await self._lists()
        mute = bool(self.remarks) and time.monotonic() - self._asked_s > ASK_AGAIN_S
        if listed == self._listed and not mute:
            return False
        before = self._phones
        found = await self._discovered()
        self._listed, self._asked_s = listed, time.monotonic()
        self._phones, self.remarks = found.phones, tuple(_remarks(found))
        return self._phones != before

    async def _lists(self) -> frozenset[tuple[str, str, int]]:
        entries: set[tuple[str, str, int]] = set()
        for source in self._sources():
            try:
                found = await self.browser.attachments(
                    source, deadline=Deadline.after(LIST_LIMIT_S)
                )
            except DeviceError:
                entries.add((source.name, "", 0))  # that it is dead is a state like another
                continue
            entries |= {(source.name, entry.udid, entry.mux_id) for entry in found}
        return frozenset(entries)

    async def _discovered(self) -> Discovery:
        return await discover(
            self._sources(),
            self.browser,
            deadline=Deadline.after(DISCOVERY_LIMIT_S),
            expected=[Expected(p.udid, p.alias, p.tags) for p in self.config.expect],
        )

    def _sources(self) -> list[UsbmuxSource]:
        return [UsbmuxSource(source.name, source.usbmux) for source in self.config.sources]

    def _holder(self, phone: Phone) -> str | None:
        address = next(s.usbmux for s in self.config.sources if s.name == phone.source)
        key = lock_key(phone.udid, phone.alias, address, virtual=phone.virtual)
        owner = holder_of(key, lock_folder())
        return owner.describe() if owner else None


def _remarks(found: Discovery) -> list[str]:
    dead = [f"source {source.reason}" for source in found.dead_sources]
    mute = [f"{phone.udid}: {phone.reason}" for phone in found.unreachable]
    return dead + mute + [f"{gone.alias}: expected, but not attached" for gone in found.absent]
