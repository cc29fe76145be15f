"""A hundred phones for ten minutes: all must pass. Runs only when named: `--only hundred`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.benchmarks.part_soak import rows_of, soaked
from tests.benchmarks.samples import Row, Sample, of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.scale import Scale

NAME: Final = "hundred"
PHONES: Final = 100
SECONDS: Final = 600.0
GROWTH: Final = ()


def measure(scale: Scale) -> list[Sample]:
    """Soak a hundred phones; a quick look takes as few and short as the quick soak."""
    quick = scale.rounds == 1
    count, seconds = (scale.soaked_phones[0], scale.soak_s) if quick else (PHONES, SECONDS)
    return [Sample(NAME, "soak", "ours", count, soaked(count, seconds).values)]


def rows(samples: Sequence[Sample]) -> list[Row]:
    """Return the lines of the table."""
    lines = []
    for one in of(samples, "soak"):
        lines += rows_of([one], one.size)
        passed = one.values["passed"]
        name = f"{one.size:g} phones: PASS"
        lines.append(Row(name, f"{passed:g}", goal=f"{one.size:g}", met=passed == one.size))
    return lines
