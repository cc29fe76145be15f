"""What `fleet devices` lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.config.load import load_config
from orchestrator.device.discovery import Expected, UsbmuxSource, discover
from orchestrator.device.pmd3.browser import UsbmuxBrowser
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.iphone import why_unlisted

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.domain.phone import Phone

DISCOVERY_LIMIT_S: Final = 30.0


class ListedPhone(msgspec.Struct, frozen=True):
    """One attached phone."""

    udid: str
    alias: str
    name: str
    model: str
    product_type: str
    os: str
    build: str
    source: str
    virtual: bool
    tags: list[str]
    note: str  # why a soak would skip it, or that it is virtual
    host: str | None = None  # of the cluster


def listed(phone: Phone, note: str) -> ListedPhone:
    """Return a phone as `fleet devices` shows it."""
    return ListedPhone(
        udid=phone.udid,
        alias=phone.alias,
        name=phone.name,
        model=phone.model,
        product_type=phone.product_type,
        os=phone.os,
        build=phone.build,
        source=phone.source,
        virtual=phone.virtual,
        tags=list(phone.tags),
        note=note,
        host=phone.host,
    )


async def listed_phones(config_file: Path | None) -> tuple[list[ListedPhone], list[str]]:
    """Return the attached phones, and remarks on what could not be asked."""
    config = load_config(config_file)
    found = await discover(
        [UsbmuxSource(source.name, source.usbmux) for source in config.sources],
        UsbmuxBrowser(),
        deadline=Deadline.after(DISCOVERY_LIMIT_S),
        expected=[Expected(phone.udid, phone.alias, phone.tags) for phone in config.expect],
    )
    rows = [
        listed(
            phone,
            why_unlisted(phone.product_type, phone.os) or ("virtual" if phone.virtual else ""),
        )
        for phone in found.phones
    ]
    remarks = [f"source {dead.reason}" for dead in found.dead_sources]
    remarks += [f"{mute.udid}: {mute.reason}" for mute in found.unreachable]
    remarks += [f"{gone.alias}: expected, but not attached" for gone in found.absent]
    return rows, remarks
