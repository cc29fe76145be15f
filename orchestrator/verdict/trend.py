"""Trends over a soak: a robust slope and a first-against-last window, which must agree.

A slope alone extrapolates the noise of a short soak; two windows alone are fooled by a spike in
one of them. Pure, and of bounded memory: a trace thins itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

# With 8 points, 2 outliers leave 15 of the 28 pairs clean: the median is still a clean slope.
MIN_POINTS: Final = 8
MAX_POINTS: Final = 160  # 12,720 pairs, a hundredth of a second
_WINDOW_RATIO: Final = 4  # a window is a quarter of the points
_SIGMA_OVER_MAD: Final = 1.4826  # of normal noise
# Two medians of a window differ by 1.25 * sqrt(2) standard errors in the usual case, and the
# scatter of few points is uncertain itself: under one noisy series in a hundred passes this many.
_MARGIN_SIGMAS: Final = 6.0


class Trace:
    """Points in order of x, thinned by half whenever they are too many."""

    def __init__(self, max_points: int = MAX_POINTS) -> None:
        self._max_points = max_points
        self._stride = 1
        self._skipped = 0
        self.points: list[tuple[float, float]] = []

    def add(self, x: float, y: float) -> None:
        """Take a point; one whose x does not increase is left out."""
        self._skipped += 1
        if self._skipped < self._stride or (self.points and x <= self.points[-1][0]):
            return
        self._skipped = 0
        self.points.append((x, y))
        if len(self.points) > self._max_points:
            self.points = self.points[::2]
            self._stride *= 2


@dataclass(frozen=True, slots=True)
class Trend:
    """How a series moves from its first to its last point."""

    slope: float  # unit of y per unit of x; robust
    span: float  # in units of x
    first: float  # median of the first quarter of the points
    last: float  # median of the last quarter
    count: int
    margin: float  # what noise alone may make of the difference of the two windows

    @property
    def change(self) -> float:
        """Last window less first window."""
        return self.last - self.first

    @property
    def change_by_slope(self) -> float:
        """What the slope gives over the whole span."""
        return self.slope * self.span

    def grows_by(self, amount: float) -> bool:
        """Return whether slope and windows agree on a growth of more than `amount`, noise aside."""
        return min(self.change, self.change_by_slope) > amount + self.margin

    def falls_by(self, amount: float) -> bool:
        """Return whether slope and windows agree on a fall of more than `amount`, noise aside."""
        return max(self.change, self.change_by_slope) < -amount - self.margin


def trend_of(points: Sequence[tuple[float, float]]) -> Trend | None:
    """Return the trend of points whose x strictly increases, None for fewer than `MIN_POINTS`.

    The slope is Theil-Sen's: the median slope over all pairs of points. Source: P. K. Sen, JASA 63
    (1968), 1379-1389.
    """
    if len(points) < MIN_POINTS:
        return None
    slope = median((y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(points, 2))
    width = max(2, len(points) // _WINDOW_RATIO)
    return Trend(
        slope=slope,
        span=points[-1][0] - points[0][0],
        first=median(y for _, y in points[:width]),
        last=median(y for _, y in points[-width:]),
        count=len(points),
        margin=_MARGIN_SIGMAS * _scatter(points, slope) / sqrt(width),
    )


def _scatter(points: Sequence[tuple[float, float]], slope: float) -> float:
    """Return the standard deviation about the line, from the median of absolute residuals."""
    residuals = [y - slope * x for x, y in points]
    middle = median(residuals)
    return _SIGMA_OVER_MAD * median(abs(residual - middle) for residual in residuals)
