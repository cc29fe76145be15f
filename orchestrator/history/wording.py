"""History and comparisons as plain lines for a terminal; texts of phones are made harmless."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from orchestrator.domain.counting import counted
from orchestrator.history.comparison import Comparison, Finding, Line
from orchestrator.history.sparkline import sparkline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.history.entry import RunEntry
    from orchestrator.history.statistics import Spread
    from orchestrator.history.trends import Trend

_MIB: Final = 1024**2


def run_lines(runs: Sequence[RunEntry]) -> list[str]:
    """Return one line per run: id, when, outcome, phones."""
    return [
        f"{printable(run.run_id)}  {_when(run.started_s)}  {printable(run.outcome):<7}  "
        f"{counted(len(run.phones), 'phone')}"
        for run in runs
    ]


def trend_lines(rows: Sequence[Trend]) -> list[str]:
    """Return one line per row: phone, number, sparkline, results, latest value."""
    cells = [_trend_cells(row) for row in rows]
    if not cells:
        return []
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def _trend_cells(row: Trend) -> list[str]:
    present = [value for value in row.values if value is not None]
    latest = amount(present[-1], row.unit) if present else "no value"
    return [
        printable(row.alias),
        printable(row.model),
        row.name,
        sparkline(row.values),
        f"[{row.results}]",
        latest,
    ]


def comparison_lines(comparison: Comparison) -> list[str]:
    """Return what a comparison found, refusals first."""
    lines = [
        f"refused: {printable(refusal.who)}: {printable('; '.join(refusal.reasons))}"
        for refusal in comparison.refusals
    ]
    lines += [text for line in comparison.lines for text in _line(line)]
    return lines or ["nothing to compare: no phone of the first side passed or failed"]


def _line(line: Line) -> list[str]:
    unit = line.measure.unit
    head = (
        f"{printable(line.stamps.model)}, {printable(line.stamps.os_build)}: {line.measure.name} "
        f"{amount(line.base.median, unit)} -> {amount(line.candidate.median, unit)} "
        f"({line.percent:+.1f} %): {line.finding}"
    )
    return [head, f"    {_test(line)}"]


def _test(line: Line) -> str:
    runs = f"{counted(line.candidate.runs, 'run')} against {line.base.runs:,}"
    shown = line.difference
    if shown is None:
        return f"{runs}: the noise is not known; add runs of the same kind, or a baseline of many"
    p = shown.p_lower if line.measure.worse == "lower" else shown.p_higher
    return (
        f"{runs}; {shown.percent:+.1f} % [{shown.low_percent:+.1f}, {shown.high_percent:+.1f}], "
        f"p(worse) = {p:.2g}, effect {shown.effect_size:+.1f} sd, noise {shown.noise_percent:.1f} "
        f"%, finds {shown.detectable_percent:.1f} %; spread {_extremes(line.base, line)} before, "
        f"{_extremes(line.candidate, line)} now"
    )


def _extremes(spread: Spread, line: Line) -> str:
    unit = line.measure.unit
    return f"{amount(spread.low, unit)}..{amount(spread.high, unit)}"


def verdict_line(comparison: Comparison) -> str:
    """Return the comparison in one sentence."""
    measures = counted(len(comparison.lines), "measure")
    if comparison.worse:
        return f"REGRESSION in {len(comparison.worse)} of {measures}"
    if comparison.conclusive:
        return "no regression"
    few = sum(line.finding is Finding.TOO_FEW_RUNS for line in comparison.lines)
    return (
        f"inconclusive: {counted(len(comparison.refusals), 'phone')} refused, "
        f"{few} of {measures} with too few runs"
    )


def amount(value: float, unit: str) -> str:
    """Return a value with its unit, bytes as MiB."""
    if unit == "bytes":
        return f"{value / _MIB:,.1f} MiB"
    return f"{value:,.4g} {printable(unit)}".rstrip()


def printable(text: str) -> str:
    """Return a text without what a terminal would obey."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def _when(unix_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(unix_s))
