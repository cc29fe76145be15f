"""What a run's page says of the runs before it: the report does not know history, this does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.cli.printing import note
from orchestrator.domain.errors import FleetError, HostFileError, RunDirectoryError
from orchestrator.domain.outcome import Outcome
from orchestrator.history.store import DATABASE_NAME, History
from orchestrator.report.last_green import GreenPhone, GreenRun, remember
from orchestrator.report.remake import remake
from orchestrator.runlog.documents import RunDocument
from orchestrator.runlog.files import read_document
from orchestrator.runlog.layout import RunPaths

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.history.entry import PhoneEntry, RunEntry
    from orchestrator.runlog.documents import SummaryDocument


def reported(run: Path) -> SummaryDocument:
    """Make all reports of a run, its page with what changed since the last green run.

    Raises:
        RunDirectoryError: If `run` is no run directory.
    """
    database = run.resolve().parent / DATABASE_NAME
    if database.exists() and RunPaths(run).run.exists():
        try:
            _remember(run, History(database))
        except FleetError as error:
            note(f"note: the page does not know earlier runs: {error}")
    return remake(run)


def reported_at_the_end(run: Path) -> SummaryDocument:
    """Make all reports of a run that has just ended.

    Raises:
        HostFileError: If its folder is not where it was: the run itself is not to blame.
    """
    try:
        return reported(run)
    except RunDirectoryError as error:
        raise HostFileError(
            f"the run's folder is not as it was written: {error}",
            remedy="If it was moved or replaced, put it back, then `fleet resume`",
        ) from error


def _remember(run: Path, history: History) -> None:
    this = read_document(RunPaths(run).run, RunDocument)
    green = last_green(history.runs(), this)
    if green is not None:
        remember(run, green)


def last_green(runs: Sequence[RunEntry], this: RunDocument) -> GreenRun | None:
    """Return the newest earlier run in which all phones passed, on phones of the same kind.

    Args:
        runs: Oldest first.
        this: The run that is reported.
    """
    kind = "yes" if this.virtual else "no"
    for run in reversed(runs):
        earlier = run.run_id != this.run_id and run.started_s < this.started_s
        same_kind = all(phone.stamps.virtual == kind for phone in run.phones)
        if earlier and same_kind and run.phones and run.outcome == Outcome.PASS:
            phones = [_phone(phone) for phone in run.phones]
            return GreenRun(run_id=run.run_id, started_s=run.started_s, phones=phones)
    return None


def _phone(entry: PhoneEntry) -> GreenPhone:
    return GreenPhone(
        udid=entry.udid,
        model=entry.stamps.model,
        os_build=entry.stamps.os_build,
        model_digest=entry.stamps.model_digest,
        app_build=entry.app_build,
        app_sha256=entry.app_sha256,
        app_commit=entry.app_commit,
    )
