"""The coverage matrix: which models on which iOS were soaked, with which result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.domain.iphone import CATALOG, os_version, why_unlisted
from orchestrator.domain.outcome import Outcome, outcome_of_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.report.result import PhoneResult, RunResult

_WORDS: Final = {
    Outcome.PASS: "pass",
    Outcome.FAIL: "fail",
    Outcome.ERROR: "inconclusive",
    Outcome.ABORTED: "inconclusive",
}
_UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Cell:
    """One model on one iOS."""

    result: str  # "pass", "fail", "inconclusive", "not run"
    phones: tuple[tuple[int, str], ...]  # place on the page, from 1, and alias


@dataclass(frozen=True, slots=True)
class Coverage:
    """Models by iOS versions; both only as far as the run knows any."""

    versions: tuple[str, ...]  # oldest first
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]  # model and one cell per version
    models_left_out: tuple[str, ...]  # that a release covers and nobody attached
    absent: tuple[tuple[int, str], ...]  # expected phones that nobody found: no model is known


def coverage_of(result: RunResult) -> Coverage:
    """Return the matrix of a run; phones that were skipped have a row, and are not run."""
    numbered = list(enumerate(result.phones, start=1))
    soaked = [(place, p) for place, p in numbered if p.verdict.model != _UNKNOWN]
    skipped = result.plan.skipped if result.plan else []
    models = {p.verdict.model for _, p in soaked} | {p.model for p in skipped}
    versions = {p.verdict.os for _, p in soaked} | {p.os for p in skipped}
    ordered = tuple(sorted(versions, key=os_version))
    return Coverage(
        versions=ordered,
        rows=tuple(
            (model, tuple(_cell(soaked, model, version) for version in ordered))
            for model in sorted(models, key=_place)
        ),
        models_left_out=tuple(
            entry.model
            for entry in CATALOG
            if entry.model not in models and why_unlisted(entry.product_type, "18.0") is None
        ),
        absent=tuple((place, p.verdict.alias) for place, p in numbered if (place, p) not in soaked),
    )


def _place(model: str) -> tuple[int, str]:
    names = [entry.model for entry in CATALOG]
    return (names.index(model) if model in names else len(names)), model


def _cell(soaked: Sequence[tuple[int, PhoneResult]], model: str, version: str) -> Cell:
    here = [(n, p) for n, p in soaked if (p.verdict.model, p.verdict.os) == (model, version)]
    if not here:
        return Cell("not run", ())
    worst = outcome_of_run([Outcome(p.verdict.outcome) for _, p in here])
    return Cell(_WORDS[worst], tuple((n, p.verdict.alias) for n, p in here))
