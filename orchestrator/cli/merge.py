"""`fleet merge RUN...`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.soak_options import config_in_use

app = typer.Typer(rich_markup_mode=None)


@app.command()
def merge(
    runs: Annotated[
        list[str], typer.Argument(help="Run directories, [NAME=]RUN; NAME is the host's.")
    ],
    output: Annotated[Path, typer.Option(help="Where the joined run goes.")] = Path("runs"),
    config: Annotated[
        Path | None, typer.Option(help="What says whom to tell, and the regression gate.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print summary.json on stdout.")] = False,
) -> None:
    """Join the runs of hosts that share nothing, the jobs of a CI matrix say, into one.

    Same report, same sign-off, same exit codes as one run of all those phones. The parts stay as
    they are. Example: fleet merge mini-1=a/runs/latest mini-2=b/runs/latest
    """
    from orchestrator.cli.conclusion import conclude
    from orchestrator.cli.lineage import reported
    from orchestrator.cli.merging import merged
    from orchestrator.config.load import load_config

    joined = merged(runs, output)
    summary = reported(joined)
    settled = config_in_use(config)
    sys.exit(conclude(joined, summary, load_config(settled), json=json))
