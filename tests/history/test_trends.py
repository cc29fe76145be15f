from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.config.model import RegressionBlock
from orchestrator.history.entry import CheckResult
from orchestrator.history.gate import GateResult, rule
from orchestrator.history.sparkline import sparkline
from orchestrator.history.store import History
from orchestrator.history.trends import trends
from orchestrator.history.wording import run_lines, trend_lines
from tests.history.entries import phone, run, runs_of

if TYPE_CHECKING:
    from pathlib import Path


def test_a_sparkline_goes_from_lowest_to_highest() -> None:
    assert sparkline([1.0, 2.0, 8.0]) == "▁▂█"
    assert sparkline([5.0, 5.0]) == "▅▅"
    assert sparkline([1.0, None, 2.0]) == "▁·█"
    assert sparkline([None]) == "·"


def test_without_a_subject_each_phone_has_one_row_and_a_place_per_run() -> None:
    runs = [run(1, phone(1.0)), run(2, phone(alias="b", udid="2")), run(3, phone(2.0))]
    first, second = trends(runs)
    assert (first.results, first.values) == ("P P", (1.0, None, 2.0))
    assert second.results == " P "


def test_a_phone_is_named_by_alias_udid_or_model() -> None:
    runs = runs_of([1.0])
    for subject in ("DESK-1", "0000000000000001", "iphone 15 pro"):
        assert [row.name for row in trends(runs, subject)] == [
            "tokens_per_s",
            "footprint_peak_bytes",
            "load_ms",
        ]
    assert trends(runs, "nobody") == []


def test_a_check_shows_its_results_and_values() -> None:
    failing = (CheckResult("memory.peak", "fail", 2e9, "bytes"),)
    runs = [run(1), run(2, phone(checks=failing)), run(3, phone(checks=()))]
    assert trends(runs, "memory.peak") == []  # the latest run does not have it
    (row,) = trends(runs[:2], "memory.peak")
    assert (row.results, row.values, row.unit) == ("pF", (1e9, 2e9), "bytes")
    assert "1,907.3 MiB" in trend_lines([row])[0]


def test_a_run_of_one_phone_is_listed_so() -> None:
    assert run_lines([run(1)])[0].endswith("  1 phone")
    assert run_lines([run(1, phone(), phone())])[0].endswith("  2 phones")


def test_the_gate_holds_regresses_or_cannot_tell(tmp_path: Path) -> None:
    history = History(tmp_path / "history.sqlite3")
    old = runs_of([200.0, 201.0, 199.0, 200.5, 199.5])
    new, slow, alien = run(50), run(51, phone(150.0)), run(52, phone(os_build="23A1"))
    for entry in (*old, new, slow, alien):
        history.record(entry)
    history.set_baseline("main", [entry.run_id for entry in old])
    block = RegressionBlock(baseline="main")
    results = [rule(block, history, entry) for entry in (new, slow, alien)]
    assert [ruling.result for ruling in results if ruling] == [
        GateResult.HELD,
        GateResult.REGRESSED,
        GateResult.INCONCLUSIVE,
    ]
    assert rule(RegressionBlock(), history, slow) is None


def test_a_run_is_not_held_against_itself(tmp_path: Path) -> None:
    history = History(tmp_path / "history.sqlite3")
    entry = run(1)
    history.record(entry)
    history.set_baseline("main", [entry.run_id])
    ruling = rule(RegressionBlock(baseline="main"), history, entry)
    assert ruling is not None
    assert ruling.result is GateResult.INCONCLUSIVE
