"""What a person calls a set of runs: a baseline, a run directory, or the start of a run id."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.domain.errors import UsageError
from orchestrator.history.reading import read_entry

if TYPE_CHECKING:
    from orchestrator.history.entry import RunEntry
    from orchestrator.history.store import History


def resolve(history: History, name: str) -> list[RunEntry]:
    """Return the runs that a name stands for, oldest first.

    A run directory that is not in the history is recorded on the way.

    Raises:
        UsageError: If nothing has this name, or several runs begin with it.
        HistoryError: If the history cannot be read.
        RunDirectoryError: If the run's verdicts were never made.
    """
    baseline = history.baselines().get(name)
    if baseline is not None:
        return [run for run in history.runs() if run.run_id in baseline]
    folder = Path(name)
    if (folder / "run.json").exists():
        entry = read_entry(folder)
        history.record(entry)
        return [entry]
    found = history.find(name)
    if not found:
        raise UsageError(
            f"{name} is no baseline, run directory or recorded run",
            remedy="`fleet history` and `fleet baseline show` list what there is",
        )
    if len(found) > 1:
        raise UsageError(f"{name} is the start of {len(found)} run ids")
    return found
