"""Keepers with tunnels of their own. Size: keepers at once."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from tests.benchmarks import keepers
from tests.benchmarks.samples import Row, Sample, middle, of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.scale import Scale

NAME: Final = "keepers"
GROWTH: Final = ()
_GOAL_MIB: Final = 6.0


def measure(scale: Scale) -> list[Sample]:
    """Open that many sessions at once and measure each keeper."""
    kept = dict(os.environ)
    try:
        with tempfile.TemporaryDirectory(prefix="k-") as name:
            os.environ.update(HOME=name, XDG_DATA_HOME=f"{name}/data")
            costs = anyio.run(keepers.measure, Path(name), scale.keepers)
    finally:
        os.environ.clear()
        os.environ.update(kept)
    return [
        Sample(
            NAME,
            "keeper",
            "ours",
            len(costs),
            {"private_mib": cost.private_mib, "shared_mib": cost.shared_mib},
        )
        for cost in costs
    ]


def rows(samples: Sequence[Sample]) -> list[Row]:
    """Return the lines of the table."""
    taken = of(samples, "keeper")
    private, shared = middle(taken, "private_mib"), middle(taken, "shared_mib")
    if private is None or shared is None:
        return []
    name = f"a keeper, {len(taken)} at once with tunnels"
    ours = f"{private:.1f} MiB private, {shared:.0f} shared"
    return [Row(name, ours, goal=f"<= {_GOAL_MIB:g} MiB private", met=private <= _GOAL_MIB)]
