"""Benchmark: `fleet model inspect` against coremltools' `load_spec`, one 757 MB package, one run.

Prints the table of docs/models.md: `pytest -s -m deep tests/benchmarks/test_inspect.py`
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

FLEET = Path(sys.executable).with_name("fleet")
ROUNDS = 7
LIMIT_S = 0.35
LIMIT_BYTES = 30_000_000
# A child's peak starts at its parent's size at the time of the fork: so a small process starts it.
MEASURE = """
import resource, subprocess, sys, time
start_s = time.monotonic()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
wall_s = time.monotonic() - start_s
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
LOAD_SPEC = "import sys, coremltools; coremltools.utils.load_spec(sys.argv[1])"


@dataclass(frozen=True)
class Cost:
    """What one process took from start to end."""

    wall_s: float
    cpu_s: float  # what a busy machine does not stretch: the limit is held by this one
    peak_bytes: int


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("coremltools") is None:
        if os.environ.get("FLEET_REQUIRE_PEERS") == "1":
            pytest.fail("coremltools is not installed, and FLEET_REQUIRE_PEERS=1")
        pytest.skip("coremltools is not installed: install the extra [models]")
    folder = tmp_path_factory.mktemp("1b")
    words = ["model", "build", "--preset", "1b", "--layout", "multifunction", "--out", str(folder)]
    subprocess.run([str(FLEET), *words], check=True, capture_output=True, timeout=600)
    return next(folder.glob("*.mlpackage"))


def cost_of(words: list[str]) -> Cost:
    """Run a command and return its cost."""
    measured = [sys.executable, "-I", "-S", "-c", MEASURE, *words]
    done = subprocess.run(measured, check=True, capture_output=True, text=True, timeout=120)
    wall_s, cpu_s, peak = (float(word) for word in done.stdout.split()[-3:])
    unit_bytes = 1 if sys.platform == "darwin" else 1024
    return Cost(wall_s, cpu_s, int(peak) * unit_bytes)


def best(costs: list[Cost]) -> Cost:
    """Return the least time of all rounds and the most memory."""
    return Cost(
        min(cost.wall_s for cost in costs),
        min(cost.cpu_s for cost in costs),
        max(cost.peak_bytes for cost in costs),
    )


@pytest.mark.deep
@pytest.mark.timeout(900)
def test_inspect_costs_less_than_load_spec(package: Path) -> None:
    size_bytes = sum(file.stat().st_size for file in package.rglob("*") if file.is_file())
    commands = {
        "`fleet model inspect`": [str(FLEET), "model", "inspect", str(package)],
        "coremltools `load_spec`": [sys.executable, "-c", LOAD_SPEC, str(package)],
    }
    # In turn, so that what else the machine does falls on both.
    rounds = [{name: cost_of(words) for name, words in commands.items()} for _ in range(ROUNDS)]
    ours, theirs = (best([each[name] for each in rounds]) for name in commands)
    print(f"\n{size_bytes:,} bytes, best of {ROUNDS} runs each\n")
    print("| reader | seconds | CPU seconds | peak memory |\n|---|---:|---:|---:|")
    for name, cost in zip(commands, (ours, theirs), strict=True):
        numbers = f"{cost.wall_s:.2f} | {cost.cpu_s:.2f} | {cost.peak_bytes / 1e6:.1f} MB"
        print(f"| {name} | {numbers} |")
    assert size_bytes > 700_000_000
    assert ours.cpu_s < LIMIT_S
    assert ours.peak_bytes < LIMIT_BYTES
    assert ours.cpu_s < theirs.cpu_s
