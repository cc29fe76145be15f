"""Many virtual phones in one process. Size: phones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.benchmarks import farm
from tests.benchmarks.samples import Row, Sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.scale import Scale

NAME: Final = "farm"
GROWTH: Final = ()


def measure(scale: Scale) -> list[Sample]:
    """Serve that many phones, idle and busy."""
    count = scale.farm_phones
    return [
        Sample(NAME, one.name, "ours", count, {one.unit: one.value}) for one in farm.measure(count)
    ]


def rows(samples: Sequence[Sample]) -> list[Row]:
    """Return the lines of the table."""
    lines = []
    for one in samples:
        ((unit, value),) = one.values.items()
        aim = farm.AIMS.get(one.measure)
        lines.append(
            Row(
                f"{one.size:g} virtual phones: {one.measure}",
                f"{value:.2f} {unit}",
                goal="" if aim is None else f"<= {aim:g} {unit}",
                met=None if aim is None else value <= aim,
            )
        )
    return lines
