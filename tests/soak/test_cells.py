"""What a self-test runs, who runs it, and what its findings add up to."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from orchestrator.domain.defects import DEFECT_BY_NAME, DEFECTS
from orchestrator.domain.memory_class import MemoryClass
from orchestrator.domain.outcome import Outcome
from orchestrator.soak.cells import (
    SWEEP_SESSIONS,
    SWEEPS,
    Cell,
    Finding,
    cells_of,
    selected,
    sweep_cells,
)
from orchestrator.soak.selftest import CellQueue
from orchestrator.soak.selftest_result import result_of


def found(cell: Cell, *failed: str, outcome: Outcome = Outcome.FAIL) -> Finding:
    return Finding(cell, Path("run"), outcome, failed, "it went so")


def test_a_self_test_has_every_defect_and_the_clean_sessions() -> None:
    cells = cells_of(DEFECTS, 24, seed=1)
    assert [cell.defect for cell in cells[:46]] == list(DEFECTS)
    assert sum(cell.defect is None for cell in cells) == 24
    assert len({cell.seed for cell in cells}) == 70


def test_parameters_are_drawn_by_the_seed_and_from_the_table() -> None:
    first = [cell.launched_as for cell in cells_of(DEFECTS, 1, seed=1)]
    assert first == [cell.launched_as for cell in cells_of(DEFECTS, 1, seed=1)]
    drawn = {
        cell.parameter
        for seed in range(40)
        for cell in cells_of([DEFECT_BY_NAME["trim-late"]], 0, seed)
    }
    assert drawn == {1, 2, 7, 64}


def test_a_clean_session_is_launched_as_nothing() -> None:
    assert Cell(seed=1).launched_as is None
    assert Cell(1, DEFECT_BY_NAME["never-trim"]).launched_as == "never-trim"
    assert Cell(1, DEFECT_BY_NAME["trim-late"], 7).launched_as == "trim-late:7"


def test_a_phone_gets_no_defect_that_cannot_show_on_it() -> None:
    queue = CellQueue(cells_of(DEFECTS, 3, seed=1))
    taken = []
    while (cell := queue.take(MemoryClass.GB6)) is not None:
        taken.append(cell)
    names = {cell.defect.name for cell in taken if cell.defect}
    assert "int8-on-6gb" in names
    assert "naive-8gib" not in names
    left = queue.take(MemoryClass.GB8)
    assert left is not None
    assert left.launched_as == "naive-8gib"
    assert queue.take(MemoryClass.GB8) is None


def test_long_sessions_come_first_and_clean_ones_last() -> None:
    queue = CellQueue(cells_of(DEFECTS, 1, seed=1))
    order = []
    while (cell := queue.take(MemoryClass.GB6)) is not None:
        order.append(cell)
    assert order[0].defect is not None
    assert order[0].defect.slow
    assert order[-1].defect is None


def test_a_defect_counts_as_caught_by_its_own_check_alone() -> None:
    cell = Cell(1, DEFECT_BY_NAME["trim-stale-state"])
    assert found(cell, "context.proven", "trim.parity").caught
    assert not found(cell, "trim.parity").caught


@pytest.mark.parametrize("outcome", [Outcome.FAIL, Outcome.ERROR, Outcome.ABORTED])
def test_a_clean_session_that_does_not_pass_is_a_false_alarm(outcome: Outcome) -> None:
    assert found(Cell(1), outcome=outcome).is_false_alarm
    assert not found(Cell(1), outcome=Outcome.PASS).is_false_alarm


def test_the_result_has_the_fixed_keys() -> None:
    never_trim = Cell(1, DEFECT_BY_NAME["never-trim"])
    findings = [
        found(Cell(2), outcome=Outcome.PASS),
        found(never_trim, "budget.never-exceeded", "trim.on-schedule"),
    ]
    result = result_of(findings, None)
    assert result.is_good
    assert msgspec.to_builtins(result) == {
        "defects": [
            {
                "name": "never-trim",
                "expected": ["budget.never-exceeded"],
                "failed": ["budget.never-exceeded", "trim.on-schedule"],
                "caught": True,
            }
        ],
        "clean": {"runs": 1, "false_alarms": 0},
    }


def test_a_defect_that_only_a_neighbour_saw_makes_the_result_bad() -> None:
    never_trim = Cell(1, DEFECT_BY_NAME["never-trim"])
    assert not result_of([found(never_trim, "trim.on-schedule")], None).is_good
    assert not result_of([found(Cell(1))], None).is_good


def test_unknown_defects_are_named() -> None:
    assert [defect.name for defect in selected(["leak", "never-trim"])] == ["never-trim", "leak"]
    assert selected([]) == DEFECTS
    with pytest.raises(KeyError, match="no-such"):
        selected(["no-such"])


def test_a_sweep_finds_the_smallest_severity_that_is_caught_like_all_larger_ones() -> None:
    cells = sweep_cells(DEFECTS, seed=1)
    assert len(cells) == sum(len(sweep.severities) for sweep in SWEEPS) * SWEEP_SESSIONS
    findings = [
        found(cell, *([cell.defect.check] if cell.defect and _is_seen(cell) else []))
        for cell in cells
    ]
    swept = result_of([], findings).sweep
    assert swept is not None
    by_name = {sweep.name: sweep for sweep in swept}
    assert set(by_name) == {"leak", "slow-decay", "trim-late"}
    assert by_name["leak"].smallest == 24
    assert by_name["trim-late"].smallest is None
    point = next(point for point in by_name["leak"].points if point.severity == 16)
    assert (point.runs, point.caught) == (SWEEP_SESSIONS, 0)


def test_a_sweep_is_of_the_chosen_defects_alone() -> None:
    cells = sweep_cells([DEFECT_BY_NAME["leak"], DEFECT_BY_NAME["crash"]], seed=1)
    assert {cell.defect.name for cell in cells if cell.defect} == {"leak"}


def _is_seen(cell: Cell) -> bool:
    return cell.defect is not None and cell.defect.name == "leak" and (cell.parameter or 0) >= 24
