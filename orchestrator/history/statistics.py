"""The test behind a comparison: does one set of runs differ from another by more than noise?

One number per run goes in, never samples within a run: those follow one another (a warm phone
stays warm), so a test that takes them as independent cries wolf. Numbers are compared on a log
scale, so differences are percent. Pure.

The test is Student's with a pooled spread, which is exact for one new run against a baseline too
(J. R. Crawford, D. C. Howell, The Clinical Neuropsychologist 12 (1998), 482-486). Where enough
runs tell, the correlation of neighbouring runs widens it: n runs then count for fewer
(G. V. Bayley, J. M. Hammersley, Suppl. JRSS 8 (1946), 184-197).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

from scipy.special import stdtr, stdtrit

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_FREEDOM: Final = 3.0  # degrees; with fewer the spread itself is a guess
MIN_RUNS_FOR_CORRELATION: Final = 24  # below, the estimate is wider than what it would correct
_MIN_GROUP: Final = 8
_MAX_CORRELATION: Final = 0.8
_POWER: Final = 0.95
_MIN_NOISE: Final = 1e-6  # of the value: clocks and counters are no finer


@dataclass(frozen=True, slots=True)
class Difference:
    """How one set of runs differs from another, in percent of the base."""

    percent: float  # of the means on the log scale
    low_percent: float  # interval at the confidence of `alpha`, two-sided
    high_percent: float
    p_lower: float  # probability of a value this low or lower, were there no difference
    p_higher: float
    effect_size: float  # Hedges' g: the difference in units of the run-to-run spread
    noise_percent: float  # run-to-run standard deviation
    detectable_percent: float  # a difference that would be found 95 times in 100
    freedom: float  # degrees, after the correction for correlation


@dataclass(frozen=True, slots=True)
class Spread:
    """Medians and extremes, for people; the test works on means of logs."""

    runs: int
    median: float
    low: float
    high: float


def spread_of(values: Sequence[float]) -> Spread:
    """Return the spread of one value per run; at least one is needed."""
    return Spread(len(values), median(values), min(values), max(values))


def difference(
    candidate: Sequence[float],
    base: Sequence[float],
    others: Sequence[Sequence[float]] = (),
    *,
    alpha: float,
) -> Difference | None:
    """Return how candidate differs from base, or None where the runs are too few to know noise.

    Args:
        candidate: One positive value per run, oldest first.
        base: The same.
        others: Further sets of like runs; they tell of the noise alone.
        alpha: Chance of a false alarm, one-sided.
    """
    groups = [[math.log(value) for value in group] for group in (candidate, base, *others)]
    correlation = _correlation(groups)
    counts = [_effective_count(len(group), correlation) for group in groups]
    freedom = sum(count - 1.0 for count in counts)
    if freedom < MIN_FREEDOM:
        return None
    # A correlated run stands for less than itself, in the sum of squares as in its mean.
    free_runs = sum(
        len(group) - len(group) / count for group, count in zip(groups, counts, strict=True)
    )
    noise = max(_MIN_NOISE, math.sqrt(_sum_of_squares(groups) / free_runs))
    error = noise * math.sqrt(1.0 / counts[0] + 1.0 / counts[1])
    shift = fmean(groups[0]) - fmean(groups[1])
    reach = error * float(stdtrit(freedom, 1.0 - alpha))
    least_found = reach + error * float(stdtrit(freedom, _POWER))
    return Difference(
        percent=_percent(shift),
        low_percent=_percent(shift - reach),
        high_percent=_percent(shift + reach),
        p_lower=float(stdtr(freedom, shift / error)),
        p_higher=float(stdtr(freedom, -shift / error)),
        effect_size=shift / noise * (1.0 - 3.0 / (4.0 * freedom - 1.0)),
        noise_percent=100.0 * noise,
        detectable_percent=100.0 * math.expm1(least_found),
        freedom=freedom,
    )


def _percent(log_ratio: float) -> float:
    return 100.0 * math.expm1(log_ratio)


def _deviations(group: Sequence[float]) -> list[float]:
    mean = fmean(group)
    return [value - mean for value in group]


def _sum_of_squares(groups: Sequence[Sequence[float]]) -> float:
    return sum(each * each for group in groups for each in _deviations(group))


def _correlation(groups: Sequence[Sequence[float]]) -> float:
    """Return the lag-1 correlation of neighbouring runs, pooled, 0 where too few runs tell."""
    telling = [_deviations(group) for group in groups if len(group) >= _MIN_GROUP]
    runs = sum(len(group) for group in telling)
    squares = sum(each * each for group in telling for each in group)
    if runs < MIN_RUNS_FOR_CORRELATION or squares <= 0.0:
        return 0.0
    products = sum(a * b for group in telling for a, b in pairwise(group))
    size = runs / len(telling)
    # Deviations from a group's own mean pull the estimate down by about (1 + 3r) / n.
    corrected = (products / squares * size + 1.0) / (size - 3.0)
    return min(_MAX_CORRELATION, max(0.0, corrected))


def _effective_count(runs: int, correlation: float) -> float:
    """Return for how many independent runs the mean of `runs` correlated ones stands."""
    if runs < 2 or correlation <= 0.0:
        return float(runs)
    doubt = sum((1.0 - lag / runs) * correlation**lag for lag in range(1, runs))
    return runs / (1.0 + 2.0 * doubt)
