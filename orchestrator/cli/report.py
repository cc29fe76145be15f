"""`fleet report RUN`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.printing import print_json, print_report

app = typer.Typer(rich_markup_mode=None)


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="A run directory, for example runs/latest.")],
    json: Annotated[bool, typer.Option("--json", help="Print summary.json on stdout.")] = False,
) -> None:
    """Remake JUnit, HTML, Markdown and JSON of a run from its directory.

    Works on a run that was killed at any instant. Exits 0 when the reports are written, whatever
    they say. Example: fleet report runs/latest
    """
    from orchestrator.report.remake import remake

    summary = remake(run)
    if json:
        print_json(summary)
    else:
        print_report(run, summary)
