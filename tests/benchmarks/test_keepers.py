"""Ten phones have their own tunnels at once; what a keeper costs is printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.keepers import memory_of

ROOT = Path(__file__).parents[2]
AT_ONCE = 10


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
def test_ten_keepers_have_their_tunnels_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.benchmarks", "--only", "keepers", "--no-page"]
    command += ["--output", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    assert f"a keeper, {AT_ONCE} at once" in done.stdout
