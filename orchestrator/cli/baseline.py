"""`fleet baseline set` and `fleet baseline show`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True)

Runs = Annotated[Path, typer.Option(help="The folder of the runs.")]


@app.callback()
def baseline() -> None:
    """Name sets of runs that later ones are held against.

    Example: fleet baseline show
    """


@app.command("set")
def set_(
    name: Annotated[str, typer.Argument(help="The name, for example main.")],
    run: Annotated[list[str], typer.Argument(help="Runs; 10 or more make a gate that can tell.")],
    runs: Runs = Path("runs"),
) -> None:
    """Make runs a baseline, in place of an older one of that name.

    Example: fleet baseline set main runs/2026*
    """
    from orchestrator.cli.living import resolve_ended
    from orchestrator.config.fields import check_alias
    from orchestrator.domain.counting import counted
    from orchestrator.domain.errors import UsageError
    from orchestrator.history.store import DATABASE_NAME, History

    try:
        check_alias(name)
    except ValueError as error:
        raise UsageError(f"a baseline's name: {error}") from error
    history = History(runs / DATABASE_NAME)
    run_ids = [entry.run_id for each in run for entry in resolve_ended(history, each)]
    history.set_baseline(name, run_ids)
    print(f"{name}: {counted(len(set(run_ids)), 'run')}")


@app.command()
def show(
    name: Annotated[str | None, typer.Argument(help="One baseline; none shows all.")] = None,
    runs: Runs = Path("runs"),
) -> None:
    """Show baselines and their runs.

    Example: fleet baseline show main
    """
    from orchestrator.domain.errors import UsageError
    from orchestrator.history.store import DATABASE_NAME, History
    from orchestrator.history.wording import run_lines

    history = History(runs / DATABASE_NAME)
    baselines = history.baselines() if history.path.exists() else {}
    if name is not None and name not in baselines:
        raise UsageError(f"no baseline is named {name}")
    recorded = history.runs() if baselines else []
    for each in [name] if name is not None else baselines:
        print(f"{each}:")
        for line in run_lines([run for run in recorded if run.run_id in baselines[each]]):
            print(f"  {line}")
