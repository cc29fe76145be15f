"""Catalog of iPhone models: what a ProductType is, and what the lab may expect of it.

Sources: ipsw_db.json and Xcode's device_traits.json for identity; public reports of
`physicalMemory` and of jetsam limits. The limits are *expected* values for planning and for
virtual phones: a real phone's limit is read at launch and never taken from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestrator.domain.memory_class import MemoryClass

MIB: Final = 1024**2


@dataclass(frozen=True, slots=True)
class IPhoneModel:
    """One iPhone model."""

    model: str  # marketing name, "iPhone 15 Pro"
    product_type: str  # "iPhone16,1"; its generation is not the marketing generation
    hardware_model: str  # "D83AP"
    chip: str  # SoC id, "t8130"
    memory_class: MemoryClass
    physical_memory_bytes: int  # as such a phone reports it
    limit_mib: int  # per-process limit without the entitlement, as the kernel prints it
    entitled_limit_mib: int  # with increased-memory-limit

    @property
    def ram_gb(self) -> int:
        """Marketed RAM in GB."""
        return int(self.memory_class.removesuffix("gb"))

    @property
    def generation(self) -> int:
        """Marketing generation: 14 for iPhone 14 Pro Max."""
        return int(self.model.split()[1].rstrip("e"))


_MEMORY: Final = {
    MemoryClass.GB6: (5_917_753_344, 2867, 4096),
    MemoryClass.GB8: (8_021_032_960, 3376, 6144),
    MemoryClass.GB12: (12_025_908_428, 3376, 6144),
}

_ROWS: Final = (
    ("iPhone 14", "iPhone14,7", "D27AP", "t8110", MemoryClass.GB6),
    ("iPhone 14 Plus", "iPhone14,8", "D28AP", "t8110", MemoryClass.GB6),
    ("iPhone 14 Pro", "iPhone15,2", "D73AP", "t8120", MemoryClass.GB6),
    ("iPhone 14 Pro Max", "iPhone15,3", "D74AP", "t8120", MemoryClass.GB6),
    ("iPhone 15", "iPhone15,4", "D37AP", "t8120", MemoryClass.GB6),
    ("iPhone 15 Plus", "iPhone15,5", "D38AP", "t8120", MemoryClass.GB6),
    ("iPhone 15 Pro", "iPhone16,1", "D83AP", "t8130", MemoryClass.GB8),
    ("iPhone 15 Pro Max", "iPhone16,2", "D84AP", "t8130", MemoryClass.GB8),
    ("iPhone 16 Pro", "iPhone17,1", "D93AP", "t8140", MemoryClass.GB8),
    ("iPhone 16 Pro Max", "iPhone17,2", "D94AP", "t8140", MemoryClass.GB8),
    ("iPhone 16", "iPhone17,3", "D47AP", "t8140", MemoryClass.GB8),
    ("iPhone 16 Plus", "iPhone17,4", "D48AP", "t8140", MemoryClass.GB8),
    ("iPhone 16e", "iPhone17,5", "V59AP", "t8140", MemoryClass.GB8),
    ("iPhone 17 Pro", "iPhone18,1", "V53AP", "t8150", MemoryClass.GB12),
    ("iPhone 17 Pro Max", "iPhone18,2", "V54AP", "t8150", MemoryClass.GB12),
    ("iPhone 17", "iPhone18,3", "V57AP", "t8150", MemoryClass.GB8),
    ("iPhone Air", "iPhone18,4", "D23AP", "t8150", MemoryClass.GB12),
    ("iPhone 17e", "iPhone18,5", "V159AP", "t8150", MemoryClass.GB8),
)

CATALOG: Final[tuple[IPhoneModel, ...]] = tuple(
    IPhoneModel(*row, *_MEMORY[row[4]]) for row in _ROWS
)

_BY_PRODUCT_TYPE: Final = {model.product_type: model for model in CATALOG}
_BY_NAME: Final = {model.model.casefold(): model for model in CATALOG}

SUPPORTED_GENERATIONS: Final = (14, 15, 16)
MINIMUM_IOS: Final = (18, 0)  # MLState


def by_product_type(product_type: str) -> IPhoneModel | None:
    """Return the model of a ProductType, or None for a phone this catalog does not know."""
    return _BY_PRODUCT_TYPE.get(product_type)


def by_name(model: str) -> IPhoneModel | None:
    """Return the model of a marketing name (case is ignored), or None."""
    return _BY_NAME.get(" ".join(model.split()).casefold())


def os_version(text: str) -> tuple[int, ...]:
    """Return `18.10` as `(18, 10)`; anything that is not digits ends the version."""
    parts: list[int] = []
    for part in text.split("."):
        if not part.isdigit():
            break
        parts.append(int(part))
    return tuple(parts)


def why_unlisted(product_type: str, os: str) -> str | None:
    """Return why a phone is outside what a soak covers, or None if it is inside."""
    model = by_product_type(product_type)
    if model is None or "Air" in model.model or model.generation not in SUPPORTED_GENERATIONS:
        name = model.model if model else product_type
        return f"{name} is not an iPhone 14, 15 or 16"
    if os_version(os) < MINIMUM_IOS:
        return f"iOS {os} has no MLState; iOS 18 or later is needed"
    return None
