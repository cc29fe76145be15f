"""The matrix of a self-test as a terminal shows it."""

from __future__ import annotations

from orchestrator.cli.selftest_table import result_lines
from orchestrator.soak.selftest_result import (
    CleanResult,
    DefectResult,
    SelfTestResult,
    SweepPoint,
    SweepResult,
)


def test_each_defect_has_a_row_with_what_was_expected_and_what_failed_besides() -> None:
    result = SelfTestResult(
        defects=[
            DefectResult("never-trim", ["budget.never-exceeded"], ["budget.never-exceeded"], True),
            DefectResult("leak", ["memory.drift"], ["memory.static-kv"], False),
        ],
        clean=CleanResult(24, 1),
    )
    assert result_lines(result) == [
        "never-trim  budget.never-exceeded  caught",
        "leak        memory.drift           MISSED  also memory.static-kv",
        "1 of 2 defects caught by their own check; 1 false alarms in 24 clean sessions",
    ]


def test_a_sweep_shows_the_smallest_severity_and_all_counts() -> None:
    points = [SweepPoint(8, 20, 3), SweepPoint(16, 20, 20)]
    sweeps = [
        SweepResult("leak", "KiB per token", 16, points),
        SweepResult("trim-late", "tokens late", None, points[:1]),
    ]
    lines = result_lines(SelfTestResult([], CleanResult(0, 0), sweeps))
    assert lines[:4] == [
        "leak: smallest caught in 95 % of runs: 16 KiB per token",
        "    8: 3/20, 16: 20/20",
        "trim-late: smallest caught in 95 % of runs: none tokens late",
        "    8: 3/20",
    ]
