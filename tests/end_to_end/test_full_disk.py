"""A disk without room, and a run's folder that is not where it was: said plainly, never a defect.

`RLIMIT_FSIZE` stands for the full disk: from a size on every write is refused.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.chaos.killed_runs import WORKLOAD
from tests.end_to_end.fleet_process import (
    FLEET,
    WITHOUT_SWIFT,
    FinishedRun,
    environment,
    finish,
    run_fleet,
    served_phones,
    start_fleet,
    wait_for,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def test_closed_standard_streams_are_nobodys_defect_and_no_files_place(tmp_path: Path) -> None:
    closed = "import os, sys; os.closerange(0, 3); os.execv(sys.argv[1], sys.argv[1:])"
    silent = [sys.executable, "-c", closed, str(FLEET)]
    for words, code in ((["explain", "4"], 0), (["explain", "no-such-word"], 2)):
        done = subprocess.run([*silent, *words], env=environment(tmp_path), check=False, timeout=60)
        assert done.returncode == code
    shown = "import os; from orchestrator.cli.main import _occupy_standard_streams as occupy; "
    shown += "os.close(0); os.close(1); occupy(); "
    shown += "null = os.stat(os.devnull).st_rdev; "
    shown += "os.write(2, str([os.fstat(n).st_rdev == null for n in (0, 1)]).encode())"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, check=True)
    assert done.stderr == b"[True, True]"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("words", [("explain", "4"), ("--version",)])
def test_output_to_a_full_disk_is_one_line_and_a_code(tmp_path: Path, words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [str(FLEET), *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(tmp_path),
            check=False,
            timeout=60,
        )
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr
    assert "internal error" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_command_that_runs_nothing_advises_no_resume(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [str(FLEET), "explain", "4"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**environment(tmp_path), "PYTHONUNBUFFERED": "1"},  # the write fails, no flush
            check=False,
            timeout=60,
        )
    assert done.returncode == 4
    assert "No space left on device" in done.stderr
    assert "fleet resume" not in done.stderr


@pytest.mark.deep
@pytest.mark.timeout(400)
def test_a_disk_that_fills_up_ends_the_run_with_a_lab_error(
    tmp_path: Path,
) -> None:
    def fill_up(pid: int, stream: Path) -> None:
        size = stream.stat().st_size + 1000
        hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))

    run = disturbed(tmp_path, fill_up)
    said = run.stdout + run.stderr
    assert run.exit_code == 4, said
    assert "internal error" not in said
    assert "File too large" in said or "File too large" in (run.path / "summary.json").read_text()


@pytest.mark.deep
@pytest.mark.timeout(400)
def test_a_folder_of_runs_that_becomes_a_link_elsewhere_is_told(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def replace_by_link(_pid: int, stream: Path) -> None:
        output = next(part for part in stream.parents if part.name == "runs")
        output.rename(output.with_name("moved"))
        output.symlink_to(elsewhere)

    run = disturbed(tmp_path, replace_by_link)
    said = run.stdout + run.stderr
    assert run.exit_code == 4, said
    assert "internal error" not in said
    assert "put it back" in said
    output = tmp_path / "runs"
    output.unlink()
    shutil.rmtree(elsewhere)
    (tmp_path / "moved").rename(output)
    resumed = run_fleet(tmp_path, "resume", "--output", str(output), limit_s=200)
    assert resumed.exit_code in (0, 4), resumed.stdout + resumed.stderr
    assert "internal error" not in resumed.stdout + resumed.stderr
    assert (resumed.path / "summary.json").exists()


def disturbed(folder: Path, disturb: Callable[[int, Path], None]) -> FinishedRun:
    """Run on one served phone, and disturb the host's files once the app streams."""
    output = folder / "runs"
    with served_phones(folder, "--phones", "1") as farm:
        process = start_fleet(
            folder, "soak", *WORKLOAD, "--output", str(output),
            USBMUXD_SOCKET_ADDRESS=farm["usbmux"], PATH=WITHOUT_SWIFT,
        )  # fmt: skip
        pattern = "*/devices/*/attempts/1/launches/1/stream.ndjson"
        wait_for(lambda: any(path.stat().st_size > 9000 for path in output.glob(pattern)), 120,
                 "the first records")  # fmt: skip
        disturb(process.pid, next(output.glob(pattern)))
        return finish(process, output, limit_s=200)
