"""The result of a self-test as lines for a terminal: the matrix of defects and checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.soak.selftest_result import DefectResult, SelfTestResult, SweepResult


def result_lines(result: SelfTestResult) -> list[str]:
    """Return a row for each defect: what was expected, whether it failed, what failed besides."""
    width = max((len(defect.name) for defect in result.defects), default=0)
    check_width = max((len(defect.expected[0]) for defect in result.defects), default=0)
    lines = [_row(defect, width, check_width) for defect in result.defects]
    lines += [line for sweep in result.sweep or () for line in _sweep_lines(sweep)]
    caught = sum(defect.caught for defect in result.defects)
    clean = result.clean
    lines.append(
        f"{caught} of {len(result.defects)} defects caught by their own check;"
        f" {clean.false_alarms} false alarms in {clean.runs} clean sessions"
    )
    return lines


def _row(defect: DefectResult, width: int, check_width: int) -> str:
    others = [check for check in defect.failed if check not in defect.expected]
    besides = f"  also {', '.join(others)}" if others else ""
    mark = "caught" if defect.caught else "MISSED"
    expected = ", ".join(defect.expected)
    return f"{defect.name.ljust(width)}  {expected.ljust(check_width)}  {mark}{besides}"


def _sweep_lines(sweep: SweepResult) -> list[str]:
    smallest = "none" if sweep.smallest is None else str(sweep.smallest)
    points = ", ".join(f"{point.severity}: {point.caught}/{point.runs}" for point in sweep.points)
    return [
        f"{sweep.name}: smallest caught in 95 % of runs: {smallest} {sweep.unit}",
        f"    {points}",
    ]
