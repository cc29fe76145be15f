"""What is not done to a run that still goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.owner import owner_lives
from orchestrator.domain.errors import RunDirectoryError, UsageError
from orchestrator.history.resolution import resolve
from orchestrator.runlog.documents import RunDocument
from orchestrator.runlog.files import read_document
from orchestrator.runlog.layout import RunPaths

if TYPE_CHECKING:
    from orchestrator.history.entry import RunEntry
    from orchestrator.history.store import History


def refuse_while_it_runs(run: Path) -> None:
    """Refuse a run that goes on: judged now it reads as ABORTED, to the live view and to history.

    Raises:
        UsageError: Naming what shows it meanwhile.
    """
    file = RunPaths(run).run
    if not file.exists():
        return  # whoever reads the run says what is missing
    document = read_document(file, RunDocument)
    if document.ended_s is None and owner_lives(document):
        raise UsageError(
            f"run {document.run_id} still goes on, its report is made at its end",
            remedy=f"`fleet watch {run}` shows it, `fleet stop {run}` ends it now",
        )


def resolve_ended(history: History, name: str) -> list[RunEntry]:
    """Return the runs that a name of the command line means, as `resolve` does.

    Raises:
        FleetError: As `resolve`; a run that goes on is not sent to `fleet report`, which refuses.
    """
    try:
        return resolve(history, name)
    except RunDirectoryError:
        refuse_while_it_runs(Path(name))
        raise
