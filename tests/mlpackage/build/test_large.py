"""The presets of 1.1 and 3 billion parameters, built and proven by the commands."""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from orchestrator.mlpackage.build.chunks import CHUNK_LIMIT_BYTES
from orchestrator.mlpackage.digest import files_of
from tests.mlpackage.making import require_models

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.deep, pytest.mark.timeout(1800)]

PEAK = re.compile(r"peak memory ([0-9,]+) bytes")
FREE_BYTES = 8_000_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    require_models()
    if shutil.disk_usage(tmp_path).free < FREE_BYTES:
        pytest.skip(f"less than {FREE_BYTES:,} bytes free for a large model")
    yield tmp_path / "kit"
    shutil.rmtree(tmp_path / "kit", ignore_errors=True)


def fleet(*arguments: str | Path) -> str:
    command = [sys.executable, "-m", "orchestrator.cli.main", "model", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def built(preset: str, folder: Path) -> tuple[float, int]:
    """Build a preset; return CPU seconds, and bytes of peak memory as printed."""
    before = cpu_s()
    found = PEAK.search(fleet("build", "--preset", preset, "--out", folder))
    assert found
    return cpu_s() - before, int(found[1].replace(",", ""))


def cpu_s() -> float:
    """CPU seconds of all children. On an idle machine the wall clock does not exceed them, and
    other jobs stretch only the wall clock."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_model_of_one_billion_is_built_in_45_seconds_and_4_gigabytes(folder: Path) -> None:
    used_s, peak_bytes = built("1b", folder)
    assert used_s < 45
    assert peak_bytes < 4 * 1024**3
    assert fleet("verify", folder).endswith("verified\n")


def test_a_model_of_three_billion_is_cut_into_packages_under_one_gigabyte(folder: Path) -> None:
    _, peak_bytes = built("3b", folder)
    assert peak_bytes < 4 * 1024**3
    sizes = [
        sum(file.stat().st_size for file in files_of(package))
        for package in folder.glob("*.mlpackage")
    ]
    assert len(sizes) == 4
    assert max(sizes) < CHUNK_LIMIT_BYTES
    fleet("lint", *folder.glob("*.mlpackage"))
