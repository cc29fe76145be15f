"""Raw samples of the benchmarks, rows of their table, and how a cost grows with a size: pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

OURS: Final = "ours"
HEADER: Final = ("measure", "ours", "peer", "ratio", "goal", "met")


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement, as it was taken."""

    part: str
    measure: str
    subject: str  # `ours`, or the peer
    size: float  # phones, processes, reports, MiB, hours: what the part says
    values: Mapping[str, float] = field(default_factory=dict)  # units are in the keys
    note: str = ""  # why there are no values


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    measure: str
    ours: str
    peer: str = ""
    ratio: str = ""
    goal: str = ""
    met: bool | None = None  # None: no goal, or not measured

    @property
    def cells(self) -> tuple[str, ...]:
        """The line's cells, in the order of `HEADER`."""
        met = (
            "" if not self.goal else {True: "yes", False: "**no**", None: "not measured"}[self.met]
        )
        return (self.measure, self.ours, self.peer, self.ratio, self.goal, met)


def of(
    samples: Iterable[Sample], measure: str, subject: str = OURS, size: float | None = None
) -> list[Sample]:
    """Return the samples of one measure that have values."""
    return [
        one
        for one in samples
        if (one.measure, one.subject) == (measure, subject)
        and size in (None, one.size)
        and one.values
    ]


def best(samples: Sequence[Sample], key: str) -> float | None:
    """Return the least value: what else the machine did only adds."""
    values = [one.values[key] for one in samples if key in one.values]
    return min(values) if values else None


def middle(samples: Sequence[Sample], key: str) -> float | None:
    """Return the median."""
    values = [one.values[key] for one in samples if key in one.values]
    return median(values) if values else None


def why_missing(samples: Iterable[Sample], measure: str, subject: str) -> str:
    """Return why a peer has no values."""
    notes = [one.note for one in samples if (one.measure, one.subject) == (measure, subject)]
    return next((note for note in notes if note), "not measured")


def exponent(points: Iterable[tuple[float, float]]) -> float | None:
    """Return b of the best cost = a x size^b, by least squares of the logarithms.

    Args:
        points: Size and cost, both above 0; fewer than two sizes give None.
    """
    logs = [(math.log(size), math.log(cost)) for size, cost in points if size > 0 and cost > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    above = sum((x - mean_x) * (y - mean_y) for x, y in logs)
    return above / sum((x - mean_x) ** 2 for x, _ in logs)


def growth(samples: Sequence[Sample], measure: str, key: str, subject: str = OURS) -> str:
    """Return the curve of a measure over its size, and its exponent."""
    sizes = sorted({one.size for one in of(samples, measure, subject)})
    costs = [(size, best(of(samples, measure, subject, size), key)) for size in sizes]
    points = [(size, cost) for size, cost in costs if cost is not None]
    fitted = exponent(points)
    curve = ", ".join(f"{size:g}: {cost:.3g}" for size, cost in points)
    return f"{curve}; exponent {fitted:.2f}" if fitted is not None else curve


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
