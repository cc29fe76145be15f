"""Measures the Swift pipeline and its reference engine.

`python -m tests.benchmarks.harness [--write]` builds `harness-bench` for release, makes weights and
goldens of the preset `tiny` and prints the tables; `--write` puts them into the page
docs/performance-harness.md with date, machine and load.
"""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from orchestrator.mlpackage.build.kit import GOLDENS_FILE, TWIN_FILE
from orchestrator.mlpackage.build.recipe import TINY
from tests.benchmarks.decoder_files import write_decoder_files

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = ROOT / "ios_harness"
PAGE: Final = ROOT / "docs" / "performance-harness.md"
COMMAND: Final = "python -m tests.benchmarks.harness --write"
_MARKS: Final = ("<!-- measured: begin -->\n", "<!-- measured: end -->\n")
_BUILD_LIMIT_S: Final = 900
_RUN_LIMIT_S: Final = 900


def measure(scratch: Path) -> str:
    """Return the tables that `harness-bench` prints.

    Args:
        scratch: Where the package is built.

    Raises:
        subprocess.CalledProcessError: If the build or the benchmark fails.
    """
    build = ["swift", "build", "-c", "release", "--product", "harness-bench"]
    build += ["--scratch-path", str(scratch)]
    subprocess.run(build, cwd=PACKAGE, check=True, timeout=_BUILD_LIMIT_S, capture_output=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_decoder_files(TINY, folder)
        bench = [str(scratch / "release" / "harness-bench")]
        bench += [str(folder / TWIN_FILE), str(folder / GOLDENS_FILE)]
        done = subprocess.run(
            bench, check=True, timeout=_RUN_LIMIT_S, capture_output=True, text=True
        )
    return done.stdout.strip() + "\n"


def conditions(load_before: float, load_after: float, niceness: int) -> str:
    """Return a line that says when, where, beside what and with what priority it was measured."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return (
        f"Measured {today} by `{COMMAND}` on {platform.system()} {platform.machine()},"
        f" {os.cpu_count()} cores,"
        f" load average {load_before:.1f} before and {load_after:.1f} after, nice {niceness}."
    )


def written(page: str, block: str) -> str:
    """Return a page with the block between its marks replaced.

    Raises:
        ValueError: If the page has no marks.
    """
    begin, end = (page.index(mark) for mark in _MARKS)
    return page[: begin + len(_MARKS[0])] + block + page[end:]


def main(arguments: list[str]) -> None:
    """Measure; print, and write where asked."""
    scratch = Path(os.environ.get("HARNESS_SCRATCH", PACKAGE / ".build"))
    before = os.getloadavg()[0]
    tables = measure(scratch)
    block = f"\n{conditions(before, os.getloadavg()[0], os.nice(0))}\n\n{tables}\n"
    sys.stdout.write(block)
    if "--write" in arguments:
        PAGE.write_text(written(PAGE.read_text("utf-8"), block), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
