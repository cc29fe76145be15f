"""Ten phones have their own tunnels at once; what a keeper costs is printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.keepers import KeeperCost, lines, memory_of

ROOT = Path(__file__).parents[2]
AT_ONCE = 10


def test_the_table_has_a_row_per_keeper_and_their_mean() -> None:
    costs = [KeeperCost("vp-01", 5.0, 60.0), KeeperCost("vp-02", 7.0, 60.0)]
    assert lines(costs)[-1] == "mean        6.0 MiB private of 2 keepers at once"
    assert len(lines(costs)) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_process_has_private_memory() -> None:
    command = [sys.executable, "-c", "print('up', flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"  # before that it is hardly a process
        private_mib, _ = memory_of(child.pid)
        child.communicate(b"\n")
    assert private_mib > 0.5


@pytest.mark.deep
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_ten_keepers_have_their_tunnels_at_once() -> None:
    command = [sys.executable, "-m", "tests.benchmarks.keepers", "--phones", str(AT_ONCE)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    rows = done.stdout.splitlines()
    assert len(rows) == AT_ONCE + 1
    assert all("MiB private" in row for row in rows)
