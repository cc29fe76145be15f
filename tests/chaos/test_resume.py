"""`kill -9` of the orchestrator at random instants: a resumed run is equal to an undisturbed one.

`make chaos` kills at CELLS instants (3 by default) under SEED; `make deep` at 50.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.chaos.killed_runs import TOKENS, ends_of, instants, killed_and_resumed, soak
from tests.end_to_end.fleet_process import processes_mentioning, served_phones, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chaos.killed_runs import Kill, PhoneEnd

CELLS = int(os.environ.get("CELLS", "3"))
SEED = int(os.environ.get("SEED", "1"))


@pytest.mark.chaos
@pytest.mark.timeout(300 + 180 * CELLS)
def test_a_killed_run_resumed_ends_like_an_undisturbed_one(tmp_path: Path) -> None:
    kill_at(tmp_path, CELLS)


@pytest.mark.deep
@pytest.mark.timeout(600 + 180 * 50)
def test_fifty_killed_runs_end_like_undisturbed_ones(tmp_path: Path) -> None:
    kill_at(tmp_path, 50)


def kill_at(folder: Path, count: int) -> None:
    with served_phones(folder, "--phones", "2") as farm:
        undisturbed = Undisturbed.of(folder / "undisturbed", farm["usbmux"])
        span_s = undisturbed.span_s
        for number, share in enumerate(instants(SEED, count)):
            place = folder / f"killed-{number}"
            kill = killed_and_resumed(place, farm["usbmux"], share, span_s)
            check(kill, place, undisturbed)
            said = f"killed after {kill.after_s:.2f} s in {kill.phases}"
            print(f"{share:.3f}: {said}, resumed {kill.resumed_s:.1f} s: equal", flush=True)
            span_s = kill.span_s  # of a machine that is busier or less busy now
    wait_for(lambda: processes_mentioning(str(folder)) == [], 30, "the end of every process")


def check(kill: Kill, folder: Path, undisturbed: Undisturbed) -> None:
    assert kill.run.exit_code == 0, kill.run.stdout + kill.run.stderr
    assert ends_of(kill.run) == undisturbed.ends
    for state in folder.glob("*/home/state/runs"):
        assert list(state.iterdir()) == []


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """What a killed run is compared with."""

    span_s: float
    ends: dict[str, PhoneEnd]

    @classmethod
    def of(cls, folder: Path, usbmux: str) -> Undisturbed:
        run, span_s = soak(folder, usbmux)
        assert run.exit_code == 0, run.stdout + run.stderr
        ends = ends_of(run)
        for end in ends.values():
            assert (end.outcome, end.cause) == ("PASS", "completed")
            assert dict(end.checks)["evict.on-warning"] == "pass"
            assert len(end.ids) == TOKENS
        print(f"undisturbed: {span_s:.1f} s, {len(ends)} phones, all PASS", flush=True)
        return cls(span_s, ends)
