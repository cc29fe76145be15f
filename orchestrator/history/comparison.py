"""Compares like with like: the same model, OS build, model digest, start conditions, engine.

Phones whose stamps are equal make a cell. A cell of the candidate without such phones in the base
is refused, with what differs; nothing is compared "nearly". Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING, Final

from orchestrator.domain.measures import MEASURES, Measure
from orchestrator.domain.outcome import Outcome
from orchestrator.history.statistics import Difference, Spread, difference, spread_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.history.entry import PhoneEntry, RunEntry, Stamps

# Half of the promised 1 %: what is left covers the correlation that short histories cannot show.
FALSE_ALARM: Final = 0.005
_JUDGED: Final = frozenset({Outcome.PASS, Outcome.FAIL})  # a lab error measures the lab


class Finding(StrEnum):
    """What a comparison of one measure says."""

    WORSE = "worse"
    BETTER = "better"
    NO_DIFFERENCE = "no difference found"
    TOO_FEW_RUNS = "too few runs"


@dataclass(frozen=True, slots=True)
class Line:
    """One measure of one cell."""

    stamps: Stamps
    measure: Measure
    candidate: Spread
    base: Spread
    difference: Difference | None  # None: too few runs to know the noise
    finding: Finding

    @property
    def percent(self) -> float:
        """Change of the medians, in percent of the base."""
        return 100.0 * (self.candidate.median / self.base.median - 1.0)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A cell that cannot be compared."""

    who: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that two sets of runs say of each other."""

    lines: tuple[Line, ...]
    refusals: tuple[Refusal, ...]

    @property
    def worse(self) -> list[Line]:
        """The regressions."""
        return [line for line in self.lines if line.finding is Finding.WORSE]

    @property
    def conclusive(self) -> bool:
        """Whether every cell was compared and every measure tested."""
        few = any(line.finding is Finding.TOO_FEW_RUNS for line in self.lines)
        return bool(self.lines) and not few and not self.refusals


def compare(
    candidate: Sequence[RunEntry],
    base: Sequence[RunEntry],
    history: Sequence[RunEntry] = (),
    *,
    max_loss_percent: Mapping[str, float] | None = None,
) -> Comparison:
    """Compare the phones of two sets of runs.

    Args:
        candidate: The runs in question, oldest first.
        base: What they are held against.
        history: All runs known; those of like phones tell of the noise, grouped by app build.
        max_loss_percent: By measure, the loss from which a proven difference is a regression.
    """
    losses = {measure.name: measure.max_loss_percent for measure in MEASURES}
    losses |= max_loss_percent or {}
    cells, known = _cells(candidate), _cells(base)
    pairs = [
        (stamps, measure)
        for stamps in cells
        if stamps in known
        for measure in MEASURES
        if _values(cells[stamps], measure) and _values(known[stamps], measure)
    ]
    taken = {run.run_id for run in (*candidate, *base)}
    builds = _by_build([run for run in history if run.run_id not in taken])
    alpha = FALSE_ALARM / max(1, len(pairs))  # Bonferroni: the promise is for the whole comparison
    lines = [
        _line(stamps, measure, cells[stamps], known[stamps], builds, (alpha, losses[measure.name]))
        for stamps, measure in pairs
    ]
    return Comparison(tuple(lines), tuple(_refusals(cells, base)))


@dataclass(frozen=True, slots=True)
class _Reading:
    run_id: str
    started_s: float
    phone: PhoneEntry


def _cells(runs: Sequence[RunEntry]) -> dict[Stamps, list[_Reading]]:
    cells: dict[Stamps, list[_Reading]] = {}
    for run in runs:
        for phone in run.phones:
            if phone.outcome in _JUDGED:
                reading = _Reading(run.run_id, run.started_s, phone)
                cells.setdefault(phone.stamps, []).append(reading)
    return cells


def _values(readings: Sequence[_Reading], measure: Measure) -> list[float]:
    """Return one positive value per run, oldest first: the median of its phones of the cell."""
    runs: dict[tuple[float, str], list[float]] = {}
    for reading in readings:
        value = reading.phone.measures.get(measure.name, 0.0)
        if value > 0.0:
            runs.setdefault((reading.started_s, reading.run_id), []).append(value)
    return [median(values) for _, values in sorted(runs.items())]


def _by_build(runs: Sequence[RunEntry]) -> list[dict[Stamps, list[_Reading]]]:
    builds: dict[str, dict[Stamps, list[_Reading]]] = {}
    for stamps, readings in _cells(runs).items():
        for reading in readings:
            build = builds.setdefault(reading.phone.app_build, {})
            build.setdefault(stamps, []).append(reading)
    return list(builds.values())


def _line(
    stamps: Stamps,
    measure: Measure,
    candidate: Sequence[_Reading],
    base: Sequence[_Reading],
    builds: Sequence[Mapping[Stamps, Sequence[_Reading]]],
    limits: tuple[float, float],
) -> Line:
    alpha, max_loss_percent = limits
    new, old = _values(candidate, measure), _values(base, measure)
    others = [_values(build.get(stamps, ()), measure) for build in builds]
    shown = difference(new, old, [other for other in others if other], alpha=alpha)
    finding = _finding(measure, shown, alpha, max_loss_percent)
    return Line(stamps, measure, spread_of(new), spread_of(old), shown, finding)


def _finding(
    measure: Measure, shown: Difference | None, alpha: float, max_loss_percent: float
) -> Finding:
    if shown is None:
        return Finding.TOO_FEW_RUNS
    lower_is_worse = measure.worse == "lower"
    p_worse = shown.p_lower if lower_is_worse else shown.p_higher
    p_better = shown.p_higher if lower_is_worse else shown.p_lower
    loss_percent = -shown.percent if lower_is_worse else shown.percent
    if p_worse < alpha and loss_percent >= max_loss_percent:
        return Finding.WORSE
    if p_better < alpha and -loss_percent >= max_loss_percent:
        return Finding.BETTER
    return Finding.NO_DIFFERENCE


def _refusals(
    cells: Mapping[Stamps, Sequence[_Reading]], base: Sequence[RunEntry]
) -> list[Refusal]:
    known = _cells(base)
    return [
        Refusal(f"{readings[0].phone.alias} ({stamps.model})", _reasons(stamps, list(known)))
        for stamps, readings in cells.items()
        if stamps not in known
    ]


def _reasons(stamps: Stamps, known: Sequence[Stamps]) -> tuple[str, ...]:
    if not known:
        return ("the base has no phone that passed or failed",)
    # The nearest: of the same model if there is one, then with the fewest differences.
    nearest = min(
        known, key=lambda other: (other.model != stamps.model, len(stamps.differences(other)))
    )
    return tuple(stamps.differences(nearest))
