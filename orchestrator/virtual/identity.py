"""Who a virtual phone is: names and numbers derived from its model, its place and a seed.

The same seed gives the same phones, so that two runs can be compared.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.domain.iphone import CATALOG, by_name, os_version

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.domain.iphone import IPhoneModel

# Builds as Apple shipped them; for any other version one is made up in their form.
BUILDS: Final = {
    "16.7.10": "20H350",
    "17.0": "21A329",
    "17.4": "21E219",
    "17.6.1": "21G93",
    "18.0": "22A3354",
    "18.4": "22E240",
    "18.5": "22F76",
    "18.6": "22G86",
    "26.0": "23A341",
}

OLDEST_IOS: Final = 16
YEAR_VERSIONS_FROM: Final = 26

_SOFTWARE_OF_CLASS: Final = {"6gb": "18.5", "8gb": "18.6"}
_SOFTWARE_OF_2025: Final = "26.0"  # iPhone18,x runs nothing older
_DEFAULT_MODELS: Final = ("iPhone 14", "iPhone 15", "iPhone 15 Pro", "iPhone 16")


@dataclass(frozen=True, slots=True)
class Identity:
    """What lockdown says about a phone, and what other daemons repeat."""

    model: IPhoneModel
    name: str  # DeviceName at first boot, `vp-01`
    os: str
    build: str
    udid: str  # chip id and ECID in hexadecimal, as on iPhones since A12
    ecid: int
    chip_id: int
    serial_number: str
    wifi_address: str


def build_of(os: str) -> str:
    """Return the build of an iOS version, made up in Apple's form where none is known.

    Raises:
        ValueError: If this is no version of iOS, or one below 16.
    """
    version = os_version(os)
    if not version or ".".join(map(str, version)) != os or version[0] < OLDEST_IOS:
        raise ValueError(f"{os!r} is no version of iOS from {OLDEST_IOS} on, like 18.5")
    major, minor, patch = (*version, 0, 0)[:3]
    # 18.5 is 22F: four ahead since iOS 4, a letter per minor version; 26 follows 18.
    train = major + 4 if major < YEAR_VERSIONS_FROM else major - 3
    return BUILDS.get(os, f"{train}{chr(ord('A') + minor % 26)}{990 + patch % 10}")


def identity_of(model: IPhoneModel, os: str, index: int, seed: int) -> Identity:
    """Return the identity of the phone at a place in the farm.

    Args:
        model: From the catalog.
        os: Marketing version of iOS, like 18.5.
        index: Place in the farm, from 0.
        seed: The farm's seed; another seed gives other UDIDs.

    Raises:
        ValueError: If this is no version of iOS, or one older than the oldest that is served.
    """
    build = build_of(os)
    digest = hashlib.sha256(f"{seed}/{index}/{model.product_type}".encode()).hexdigest()
    ecid = int(digest[:14], 16) >> 3  # 53 bits: two leading zero digits, as on real phones
    chip_id = int(model.chip.removeprefix("t"), 16)
    return Identity(
        model=model,
        name=f"vp-{index + 1:02d}",
        os=os,
        build=build,
        udid=f"{chip_id:08X}-{ecid:016X}",
        ecid=ecid,
        chip_id=chip_id,
        serial_number=f"V{digest[14:23].upper()}",
        # 02: locally administered, so that it is never the address of real hardware
        wifi_address=":".join(["02", *(digest[at : at + 2] for at in range(24, 34, 2))]),
    )


def default_phones(count: int | None = None) -> list[tuple[str, str]]:
    """Return (model, iOS) of the phones a farm has if nobody says otherwise, `count` of them."""
    return phones_of(_DEFAULT_MODELS, count)


def phones_of(models: Sequence[str], count: int | None = None) -> list[tuple[str, str]]:
    """Return (model, iOS) for marketing names; `count` repeats the list in a round.

    Raises:
        ValueError: If a name is not in the catalog (the message lists those that are), if there
            is no name, or if `count` is below 1.
    """
    total = len(models) if count is None else count
    if not models or total < 1:
        raise ValueError("a farm needs at least one phone")
    known = [model_of(name) for name in models]
    chosen = [known[at % len(known)] for at in range(total)]
    return [(model.model, _software_of(model)) for model in chosen]


def model_of(name: str) -> IPhoneModel:
    """Return the catalog entry of a marketing name.

    Raises:
        ValueError: If the catalog has none; the message lists the names it has.
    """
    model = by_name(name)
    if model is None:
        names = ", ".join(entry.model for entry in CATALOG)
        raise ValueError(f"{name!r} is not a known iPhone; known: {names}")
    return model


def _software_of(model: IPhoneModel) -> str:
    if model.product_type.startswith("iPhone18,"):
        return _SOFTWARE_OF_2025
    return _SOFTWARE_OF_CLASS[model.memory_class]


def offers_tunnel(os: str) -> bool:
    """Whether this iOS offers CoreDeviceProxy on lockdown, the tunnel that needs no root."""
    return os_version(os) >= (17, 4)


def serves_developer_on_lockdown(os: str) -> bool:
    """Whether this iOS starts developer services from plain lockdown, without a tunnel."""
    return os_version(os) < (17,)
