"""Faults in the middle of runs: the right end for the phone that has it, none for the others.

`make chaos` runs CELLS cells (3 by default) and a pair, drawn by SEED; `make deep` all of them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.chaos.cells import (
    GOES_ON,
    LEFT_OUT,
    LEFT_OUT_PAIRS,
    PHASES,
    all_cells,
    drawn,
    grouped,
    pairs,
)
from tests.chaos.faulty_runs import number_of, run_cells
from tests.end_to_end.fleet_process import processes_mentioning, served_phones, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chaos.cells import Group

CELLS = int(os.environ.get("CELLS", "3"))
SEED = int(os.environ.get("SEED", "1"))


def test_cells_are_named_once_and_drawn_by_their_seed() -> None:
    names = [cell.name for cell in all_cells()]
    assert len(set(names)) == len(names)
    assert drawn(1, 3) == drawn(1, 3)
    assert len(drawn(1, 3)) == 4
    assert drawn(1, 10_000)[: len(names)] == all_cells()
    assert {step.phase for cell in all_cells() for step in cell.steps} == set(PHASES)
    assert all(why for _, _, why in LEFT_OUT)
    assert all(why for _, why in LEFT_OUT_PAIRS)


def test_pairs_are_two_faults_in_order_and_their_ends_are_known() -> None:
    found = pairs(2, 15)
    assert pairs(2, 15) == found
    assert all(cell.ends for cell in found)
    for cell in found:
        first, second = cell.steps
        assert first.injection != second.injection
        assert PHASES.index(first.phase) <= PHASES.index(second.phase)
        assert not cell.is_alone


def test_every_cell_is_in_one_group_and_farm_wide_faults_are_alone() -> None:
    cells = drawn(SEED, 10_000)
    groups = grouped(cells)
    assert sorted(cell.name for group in groups for cell in group.cells) == sorted(
        cell.name for cell in cells
    )
    assert all(len(group.cells) == 1 for group in groups if group.cells[0].is_alone)


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("group", grouped(drawn(SEED, CELLS)), ids=lambda group: group.name)
def test_a_fault_ends_as_it_must(group: Group, tmp_path: Path) -> None:
    check(group, tmp_path)


@pytest.mark.deep
@pytest.mark.timeout(600)
@pytest.mark.parametrize("group", grouped(drawn(SEED, 10_000)), ids=lambda group: group.name)
def test_every_fault_ends_as_it_must(group: Group, tmp_path: Path) -> None:
    check(group, tmp_path)


def check(group: Group, folder: Path) -> None:
    with served_phones(folder, "--phones", str(max(2, len(group.cells) + 1))) as farm:
        result = run_cells(group.cells, folder, farm)
        ends = dict(result.ends)
        for index, cell in enumerate(group.cells):
            print(f"{cell.name}: {ends[number_of(index)]}", flush=True)
        print(f"{len(group.cells)} cells in {result.took_s:.0f} s", flush=True)
        wrong = {
            cell.name: end
            for index, cell in enumerate(group.cells)
            if (end := ends.pop(number_of(index))) not in cell.ends
        }
        assert wrong == {}, result.run.stdout
        assert set(ends.values()) == GOES_ON  # the healthy ones
        restarts = {number_of(i): cell.restarts for i, cell in enumerate(group.cells)}
        assert {
            number for number, when in restarts.items() if when == "running"
        } <= result.restarted
        assert result.restarted <= {number for number, when in restarts.items() if when}
        assert set(result.lost_records.values()) == {0}
        assert list((folder / "home" / "state" / "runs").iterdir()) == []
    wait_for(lambda: processes_mentioning(str(folder)) == [], 60, "the end of every process")
