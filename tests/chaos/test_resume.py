"""`kill -9` of the orchestrator at random instants: a resumed run is equal to an undisturbed one.

`make chaos` kills at CELLS instants (3 by default) under SEED; `make deep` at 50.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.chaos.killed_runs import (
    TOKEN_INDEXED,
    WORKLOAD,
    ends_of,
    instants,
    killed_and_resumed,
    soak,
)
from tests.end_to_end.fleet_process import processes_mentioning, served_phones, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chaos.killed_runs import PhoneEnd

# By turns: one with the kernel's warning, which comes by time, one whose every token is fixed.
WORKLOADS = {"kernel-warning": WORKLOAD, "token-indexed": TOKEN_INDEXED}
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
        usbmux = farm["usbmux"]
        runs = [Undisturbed.of(folder / name, usbmux, work) for name, work in WORKLOADS.items()]
        for number, share in enumerate(instants(SEED, count)):
            run = runs[number % len(runs)]
            kill_once(folder / f"killed-{number}", usbmux, run, share)
    wait_for(lambda: processes_mentioning(str(folder)) == [], 30, "the end of every process")


def kill_once(folder: Path, usbmux: str, undisturbed: Undisturbed, share: float) -> None:
    kill = killed_and_resumed(folder, usbmux, undisturbed.workload, share, undisturbed.span_s)
    said = f"killed after {kill.after_s:.2f} s in {kill.phases}, resumed {kill.resumed_s:.1f} s"
    print(said, flush=True)
    assert kill.run.exit_code == undisturbed.exit_code, kill.run.stdout + kill.run.stderr
    found = ends_of(kill.run)
    for udid, end in undisturbed.ends.items():
        if undisturbed.workload is TOKEN_INDEXED:
            assert found[udid].ids == end.ids
            assert len(end.ids) == 2400
        shared = min(len(end.ids), len(found[udid].ids))
        assert shared > 1200
        assert found[udid].ids[:shared] == end.ids[:shared]
        assert found[udid].checks == end.checks
        assert (found[udid].outcome, found[udid].cause) == (end.outcome, end.cause)
    for state in folder.glob("*/home/state/runs"):
        assert list(state.iterdir()) == []


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """What a killed run is compared with."""

    workload: tuple[str, ...]
    exit_code: int
    span_s: float
    ends: dict[str, PhoneEnd]

    @classmethod
    def of(cls, folder: Path, usbmux: str, workload: tuple[str, ...]) -> Undisturbed:
        run, span_s = soak(folder, usbmux, workload)
        expected = 0 if workload is WORKLOAD else 4
        assert run.exit_code == expected, run.stdout + run.stderr
        ends = ends_of(run)
        assert {end.cause for end in ends.values()} == {"completed"}
        return cls(workload, run.exit_code, span_s, ends)
