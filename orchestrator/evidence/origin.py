"""Which device wrote a report: phones also store those of a paired watch, a Mac's simulator's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.evidence.fields import count, mapping, text

if TYPE_CHECKING:
    from orchestrator.evidence.fields import Json

# Mach-O platforms, <mach-o/loader.h>; a header names the one of the process's binary.
_SIMULATOR_PLATFORMS: Final = frozenset({7, 8, 9, 12})
_COMPANION_PLATFORMS: Final = frozenset({3, 4, 5, 11})  # tvOS, watchOS, bridgeOS, visionOS
_COMPANION_PRODUCTS: Final = (
    "Watch",
    "AppleTV",
    "AudioAccessory",
    "RealityDevice",
    "AirPods",
    "iBridge",
)
_COMPANION_SYSTEMS: Final = ("watch", "apple tv", "tvos", "bridge", "visionos", "xros", "audioos")
_MAC_PRODUCTS: Final = ("Mac", "iMac", "VirtualMac")
_MAC_SYSTEMS: Final = ("macos", "mac os", "os x")
_COMPANION_FOLDER: Final = "ProxiedDevice"  # where a phone keeps the reports of its watch
_SIMULATOR_PATH: Final = "/CoreSimulator/"


def product_of(body: Json) -> str | None:
    """Return the ProductType of the device."""
    return text(body, "product", "modelCode")


def why_ignored(header: Json, body: Json, file: str) -> str | None:
    """Return why a report is not about an iPhone, None if it may be about one."""
    if _is_simulator(header, body):
        return "a simulator's report"
    product = product_of(body) or ""
    systems = [
        value.casefold()
        for value in (
            text(header, "os_version"),
            text(mapping(body, "osVersion"), "train"),
            text(body, "build"),
        )
        if value
    ]
    if (
        product.startswith(_COMPANION_PRODUCTS)
        or any(system.startswith(_COMPANION_SYSTEMS) for system in systems)
        or count(header, "platform") in _COMPANION_PLATFORMS
        or any(part.startswith(_COMPANION_FOLDER) for part in file.split("/")[:-1])
    ):
        return "a companion device's report"
    if product.startswith(_MAC_PRODUCTS) or any(s.startswith(_MAC_SYSTEMS) for s in systems):
        return "a Mac's report"
    return None


def _is_simulator(header: Json, body: Json) -> bool:
    simulated = body.get("isSimulated")
    return (
        (isinstance(simulated, int) and bool(simulated))
        or count(header, "platform") in _SIMULATOR_PLATFORMS
        or _SIMULATOR_PATH in (text(body, "procPath") or "")
    )
