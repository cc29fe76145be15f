"""Finds phones on usbmux sources, all at once, and says who they are.

A mute phone costs its own deadline and nobody else's: it becomes `Unreachable`. The reading
itself is behind `Browser`; `device.pmd3.browser` is the real one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import anyio

from orchestrator.device.aliases import aliases_of
from orchestrator.domain.errors import DeviceError
from orchestrator.domain.phone import Phone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.domain.deadline import Deadline

IDENTITY_LIMIT_S: Final = 10.0  # for one phone; a healthy one answers in well under a second


@dataclass(frozen=True, slots=True)
class UsbmuxSource:
    """Where phones are found."""

    name: str
    address: str = "default"  # or host:port; `default` is the environment's, else the system's


@dataclass(frozen=True, slots=True)
class Expected:
    """A phone that the configuration counts on."""

    udid: str
    alias: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Attachment:
    """One entry of a usbmuxd's list."""

    udid: str
    source: UsbmuxSource
    mux_id: int
    is_usb: bool  # else over the network


@dataclass(frozen=True, slots=True)
class Identity:
    """What a phone answers before any session is made; hostile text."""

    name: str
    product_type: str
    os: str
    build: str
    virtual: bool


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A phone that usbmux lists and that does not say who it is."""

    udid: str
    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class DeadSource:
    """A usbmuxd that could not be asked."""

    source: str
    reason: str  # a whole sentence, remedy included
    facts: str  # what happened, alone
    remedy: str  # empty where there is none


@dataclass(frozen=True, slots=True)
class Discovery:
    """All that was found, and all that was not."""

    phones: tuple[Phone, ...]
    unreachable: tuple[Unreachable, ...]
    absent: tuple[Expected, ...]  # expected, and listed by no source
    dead_sources: tuple[DeadSource, ...]


class Browser(Protocol):
    """Reads usbmux lists and identities; raises `DeviceError` only."""

    async def attachments(
        self, source: UsbmuxSource, *, deadline: Deadline
    ) -> Sequence[Attachment]:
        """Return what one source lists."""
        ...

    async def identity(self, attachment: Attachment, *, deadline: Deadline) -> Identity:
        """Ask one phone who it is."""
        ...


async def discover(
    sources: Sequence[UsbmuxSource],
    browser: Browser,
    *,
    deadline: Deadline,
    expected: Sequence[Expected] = (),
) -> Discovery:
    """Return the phones of all sources, in order of UDID."""
    found, dead = await _attached(sources, browser, deadline)
    answers = await _identities(found, browser, deadline)
    known = {normal_udid(entry.udid): entry for entry in expected}
    identities = {udid: answer for udid, answer in answers.items() if isinstance(answer, Identity)}
    aliases = aliases_of(
        {udid: identity.name for udid, identity in identities.items()},
        {udid: entry.alias for udid, entry in known.items()},
    )
    phones = tuple(
        _phone(found[udid], identities[udid], aliases[udid], known.get(udid))
        for udid in sorted(identities)
    )
    unreachable = tuple(
        answer for _, answer in sorted(answers.items()) if isinstance(answer, Unreachable)
    )
    absent = tuple(entry for udid, entry in known.items() if udid not in found)
    return Discovery(phones, unreachable, absent, dead)


def normal_udid(udid: str) -> str:
    """Return a UDID in the form with a dash; some usbmuxds drop it."""
    plain = udid.strip()
    if re.fullmatch(r"[0-9A-Fa-f]{24}", plain):
        plain = f"{plain[:8]}-{plain[8:]}"
    return plain.upper() if "-" in plain else plain


def merged(attachments: Sequence[Attachment]) -> dict[str, Attachment]:
    """Return one attachment per UDID: a cable wins over the network, then the first source."""
    best: dict[str, Attachment] = {}
    for attachment in attachments:
        rival = best.get(attachment.udid)
        if rival is None or (attachment.is_usb and not rival.is_usb):
            best[attachment.udid] = attachment
    return best


async def _attached(
    sources: Sequence[UsbmuxSource], browser: Browser, deadline: Deadline
) -> tuple[dict[str, Attachment], tuple[DeadSource, ...]]:
    lists: dict[str, Sequence[Attachment]] = {}
    dead: dict[str, DeadSource] = {}

    async def ask(source: UsbmuxSource) -> None:
        limited = deadline.within(IDENTITY_LIMIT_S)
        try:
            lists[source.name] = await browser.attachments(source, deadline=limited)
        except DeviceError as error:
            dead[source.name] = DeadSource(source.name, str(error), error.facts, error.remedy)

    async with anyio.create_task_group() as tasks:
        for source in sources:
            tasks.start_soon(ask, source)
    in_order = [entry for source in sources for entry in lists.get(source.name, ())]
    return merged(in_order), tuple(dead[source.name] for source in sources if source.name in dead)


async def _identities(
    found: dict[str, Attachment], browser: Browser, deadline: Deadline
) -> dict[str, Identity | Unreachable]:
    answers: dict[str, Identity | Unreachable] = {}

    async def ask(attachment: Attachment) -> None:
        limited = deadline.within(IDENTITY_LIMIT_S)
        try:
            answers[attachment.udid] = await browser.identity(attachment, deadline=limited)
        except DeviceError as error:
            answers[attachment.udid] = Unreachable(
                attachment.udid, attachment.source.name, str(error)
            )

    async with anyio.create_task_group() as tasks:
        for attachment in found.values():
            tasks.start_soon(ask, attachment)
    return answers


def _phone(
    attachment: Attachment, identity: Identity, alias: str, expected: Expected | None
) -> Phone:
    return Phone(
        udid=attachment.udid,
        alias=alias,
        name=identity.name,
        product_type=identity.product_type,
        os=identity.os,
        build=identity.build,
        source=attachment.source.name,
        virtual=identity.virtual,
        tags=expected.tags if expected else (),
    )
