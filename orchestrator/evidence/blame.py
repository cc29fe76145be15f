"""Whether a jetsam kill was the app's own doing or the system's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from orchestrator.domain.iphone import CATALOG, MIB, by_product_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.evidence.reports import JetsamVictim

# XNU memstat_kill_cause_name, <sys/kern_memorystatus.h>.
OWN_REASONS: Final = frozenset(
    {"per-process-limit", "highwater", "idle-exit", "long-idle-exit", "conclave-limit"}
)
SYSTEM_REASONS: Final = frozenset(
    {"jettisoned", "vnode-limit", "vm-pageshortage", "proc-thrashing", "fc-thrashing"}
    | {"disk-space-shortage", "zone-map-exhaustion", "vm-compressor-thrashing", "low-swap"}
    | {"vm-compressor-space-shortage", "sustained-memory-pressure", "vm-pageout-starvation"}
    | {"diagnostic"}
)
IDLE_REASONS: Final = frozenset({"idle-exit", "long-idle-exit"})

INNOCENT_RATIO: Final = 0.8  # of the limit: an app under it did not fill the phone
FAR_LARGER: Final = 2.0  # times the app's footprint


def blame(
    victim: JetsamVictim, before: Sequence[JetsamVictim], product: str | None
) -> Literal["app", "system"]:
    """Return who is to blame for a kill.

    The system is, where a system-wide reason killed an app that used less than 80 % of its limit,
    or that fell after a far larger process.

    Args:
        victim: The app.
        before: Who was killed before it in the same event.
        product: ProductType of the phone; its limit without the entitlement counts, unless the
            footprint itself proves that the app had more.
    """
    if victim.reason not in SYSTEM_REASONS:
        return "app"
    used_bytes = victim.footprint_bytes
    if used_bytes is None:
        return "system"
    if used_bytes < INNOCENT_RATIO * _limit_bytes(product, used_bytes):
        return "system"
    far_larger = any((v.footprint_bytes or 0) >= FAR_LARGER * used_bytes for v in before)
    return "system" if far_larger else "app"


def _limit_bytes(product: str | None, used_bytes: int) -> int:
    model = by_product_type(product or "")
    limits = (model.limit_mib, model.entitled_limit_mib) if model else (_LEAST_LIMIT_MIB,)
    fitting = [limit * MIB for limit in limits if limit * MIB >= used_bytes]
    return fitting[0] if fitting else limits[-1] * MIB


# For a phone that the catalog does not know.
_LEAST_LIMIT_MIB: Final = min(model.limit_mib for model in CATALOG)
