"""Faults in the middle of runs: the right end for the phone that has it, none for the others.

`make chaos` runs CELLS cells (3 by default) drawn by SEED; `make deep` all of them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.chaos.cells import GOES_ON, LEFT_OUT, PHASES, all_cells, drawn
from tests.chaos.faulty_runs import HEALTHY, VICTIM, run_cell
from tests.end_to_end.fleet_process import processes_mentioning, served_phones, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chaos.cells import Cell

CELLS = int(os.environ.get("CELLS", "3"))
SEED = int(os.environ.get("SEED", "1"))


def test_cells_are_named_once_and_drawn_by_their_seed() -> None:
    names = [cell.name for cell in all_cells()]
    assert len(set(names)) == len(names)
    assert drawn(1, 3) == drawn(1, 3)
    assert len(drawn(1, 3)) == 3
    assert drawn(1, 10_000) == all_cells()
    assert {cell.phase for cell in all_cells()} == set(PHASES)
    assert all(why for _, _, why in LEFT_OUT)


@pytest.mark.chaos
@pytest.mark.timeout(300)
@pytest.mark.parametrize("cell", drawn(SEED, CELLS), ids=lambda cell: cell.name)
def test_a_fault_ends_as_it_must(cell: Cell, tmp_path: Path) -> None:
    check(cell, tmp_path)


@pytest.mark.deep
@pytest.mark.timeout(300)
@pytest.mark.parametrize("cell", all_cells(), ids=lambda cell: cell.name)
def test_every_fault_ends_as_it_must(cell: Cell, tmp_path: Path) -> None:
    check(cell, tmp_path)


def check(cell: Cell, folder: Path) -> None:
    with served_phones(folder, "--phones", "2") as farm:
        result = run_cell(cell, folder, farm)
        print(f"{cell.name}: {result.ends} in {result.took_s:.0f} s")
        assert result.ends[VICTIM] in cell.ends, result.run.stdout
        assert {result.ends[HEALTHY]} == GOES_ON
        assert set(result.lost_records.values()) == {0}
        assert list((folder / "home" / "state" / "runs").iterdir()) == []
    wait_for(lambda: processes_mentioning(str(folder)) == [], 30, "the end of every process")
