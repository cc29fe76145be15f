"""`kill -9` of the orchestrator at random instants: a resumed run is equal to an undisturbed one.

`make chaos` kills at CELLS instants (3 by default) under SEED; `make deep` at 50.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.chaos.killed_runs import ends_of, instants, killed_and_resumed, soak
from tests.end_to_end.fleet_process import processes_mentioning, served_phones, wait_for

if TYPE_CHECKING:
    from pathlib import Path

CELLS = int(os.environ.get("CELLS", "3"))
SEED = int(os.environ.get("SEED", "1"))


@pytest.mark.chaos
@pytest.mark.timeout(120 + 90 * CELLS)
def test_a_killed_run_resumed_ends_like_an_undisturbed_one(tmp_path: Path) -> None:
    kill_at(tmp_path, CELLS)


@pytest.mark.deep
@pytest.mark.timeout(120 + 90 * 50)
def test_fifty_killed_runs_end_like_undisturbed_ones(tmp_path: Path) -> None:
    kill_at(tmp_path, 50)


def kill_at(folder: Path, count: int) -> None:
    with served_phones(folder, "--phones", "2") as farm:
        undisturbed, span_s = soak(folder / "undisturbed", farm["usbmux"])
        assert undisturbed.exit_code == 0, undisturbed.stdout + undisturbed.stderr
        expected = ends_of(undisturbed)
        for number, after_s in enumerate(instants(SEED, count, span_s)):
            kill = killed_and_resumed(folder / f"killed-{number}", farm["usbmux"], after_s)
            print(f"killed after {after_s:.2f} s in {kill.phases}, resumed {kill.resumed_s:.1f} s")
            assert kill.run.exit_code == 0, kill.run.stdout + kill.run.stderr
            found = ends_of(kill.run)
            for udid, end in expected.items():
                shared = min(len(end.ids), len(found[udid].ids))
                assert shared > 1200
                assert found[udid].ids[:shared] == end.ids[:shared]
                assert found[udid].checks == end.checks
                assert (found[udid].outcome, found[udid].cause) == (end.outcome, end.cause)
            state = folder / f"killed-{number}" / "home" / "state"
            assert list((state / "runs").iterdir()) == []
    wait_for(lambda: processes_mentioning(str(folder)) == [], 30, "the end of every process")
