"""`fleet history`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def history(
    subject: Annotated[
        str | None, typer.Argument(help="A phone, a model or a check; none lists the runs.")
    ] = None,
    runs: Annotated[Path, typer.Option(help="The folder of the runs.")] = Path("runs"),
    last: Annotated[int, typer.Option(min=1, help="How many of the latest runs.")] = 40,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make the database again from the run directories.")
    ] = False,
) -> None:
    """Show past runs: outcomes and numbers per phone, oldest first, one place per run.

    Examples: fleet history; fleet history "iPhone 15 Pro"; fleet history memory.peak
    """
    from orchestrator.domain.counting import counted
    from orchestrator.domain.errors import UsageError
    from orchestrator.history.store import DATABASE_NAME, History
    from orchestrator.history.trends import trends
    from orchestrator.history.wording import run_lines, trend_lines

    database = runs / DATABASE_NAME
    if rebuild:
        _rebuild(database, runs)
    past = History(database).runs(newest=last) if database.exists() else []
    rows = trends(past, subject)
    if past and not rows and subject is not None:
        raise UsageError(
            f"{subject} is no phone, model or check of the last {counted(len(past), 'run')}",
            remedy="`fleet history` lists the phones, `fleet explain` the checks",
        )
    lines = [*(run_lines(past) if subject is None else []), *trend_lines(rows)]
    for line in lines or ["nothing is recorded"]:
        print(line)


def _rebuild(database: Path, runs: Path) -> None:
    from orchestrator.cli.printing import note
    from orchestrator.domain.counting import counted
    from orchestrator.domain.errors import UsageError
    from orchestrator.history.rebuild import rebuild

    if not runs.is_dir():
        raise UsageError(f"{runs} is no folder of runs")
    done = rebuild(database, runs)
    note(f"recorded {counted(len(done.recorded), 'run')}")
    for sentence in done.left_out:
        note(f"left out: {sentence}")
    if done.old_file is not None:
        note(f"the old database is {done.old_file}")
    if done.baselines_lost:
        note("the old database could not tell its baselines: set them again")
