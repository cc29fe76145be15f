"""`fleet watch [RUN]`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def watch(
    run: Annotated[
        str | None, typer.Argument(help="A run directory or id; default the latest.")
    ] = None,
    output: Annotated[Path, typer.Option(help="Where run folders are.")] = Path("runs"),
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks.")] = 2.0,
) -> None:
    """Look at a run every few seconds until it ends; takes no part in it.

    Example: fleet watch runs/latest
    """
    from orchestrator.cli.status import status

    status(run, output, json=False, follow=every)
