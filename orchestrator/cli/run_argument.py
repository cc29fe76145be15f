"""A run as a person names it: a directory, or an id below the folder of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from orchestrator.domain.errors import RunDirectoryError

RUNS: Final = Path("runs")


def run_folder(name: str | None, output: Path = RUNS) -> Path:
    """Return the directory of a run, links followed.

    Args:
        name: A path, or a run id; None for the latest.
        output: Where run directories are.

    Raises:
        RunDirectoryError: If there is none.
    """
    for candidate in (Path(name), output / name) if name else (output / "latest",):
        if (candidate / "run.json").exists():
            return candidate.resolve()
    raise RunDirectoryError(
        f"{name or output / 'latest'} is not a run directory",
        remedy=f"Name a directory or an id below {output}/",
    )
