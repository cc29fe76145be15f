"""What a phone offers: chip, RAM class and the limit of one process."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.domain.errors import UsageError
from orchestrator.domain.iphone import CATALOG, MIB, MINIMUM_IOS, by_name, why_unlisted

if TYPE_CHECKING:
    from orchestrator.domain.iphone import IPhoneModel
    from orchestrator.domain.memory_class import MemoryClass

_ANY_OS: Final = ".".join(map(str, MINIMUM_IOS))
_CHIPS: Final = {
    "t8110": "A15",
    "t8120": "A16",
    "t8130": "A17 Pro",
    "t8140": "A18",
    "t8150": "A19",
}


@dataclass(frozen=True, slots=True)
class MeasuredLimit:
    """A process limit that a run read on a real phone of a model."""

    limit_bytes: int
    run_id: str


# By marketing name and whether the app had the memory entitlement.
MeasuredLimits = Mapping[tuple[str, bool], MeasuredLimit]


@dataclass(frozen=True, slots=True)
class Offer:
    """What one phone model offers to one process."""

    model: str
    chip: str
    memory_class: MemoryClass
    ram_gb: int
    limit_bytes: int
    limit_origin: str  # "documented", or "measured in <run>"


def offers(names: list[str], measured: MeasuredLimits, *, entitled: bool) -> list[Offer]:
    """Return what the named phone models offer; all that a soak covers for no name.

    Raises:
        UsageError: If a name is no iPhone of the catalog.
    """
    models = [_named(name) for name in names] if names else _covered()
    return [_offer(model, measured, entitled) for model in models]


def _covered() -> list[IPhoneModel]:
    return [model for model in CATALOG if why_unlisted(model.product_type, _ANY_OS) is None]


def _named(name: str) -> IPhoneModel:
    model = by_name(name)
    if model is None:
        known = {each.model.casefold(): each.model for each in CATALOG}
        near = difflib.get_close_matches(name.casefold(), known, n=3)
        remedy = f"Near it: {', '.join(known[each] for each in near)}" if near else ""
        raise UsageError(f"no iPhone model is named {name!r}", remedy=remedy)
    return model


def _offer(model: IPhoneModel, measured: MeasuredLimits, entitled: bool) -> Offer:
    found = measured.get((model.model, entitled))
    documented_mib = model.entitled_limit_mib if entitled else model.limit_mib
    chip = _CHIPS.get(model.chip, model.chip)
    # The catalog lists one SoC id for both; the Pro models have the Pro chip.
    is_pro = "Pro" in model.model and "Pro" not in chip and model.generation >= 16
    return Offer(
        model=model.model,
        chip=f"{chip} Pro" if is_pro else chip,
        memory_class=model.memory_class,
        ram_gb=model.ram_gb,
        limit_bytes=found.limit_bytes if found else documented_mib * MIB,
        limit_origin=f"measured in {found.run_id}" if found else "documented",
    )
