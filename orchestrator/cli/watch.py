"""`fleet watch [RUN]`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.cluster_access import (  # noqa: TC001 - typer reads them
    CertificatesOption,
    ClusterOption,
)

app = typer.Typer(rich_markup_mode=None)


@app.command()
def watch(
    run: Annotated[
        str | None, typer.Argument(help="A run directory or id; default the latest.")
    ] = None,
    output: Annotated[Path, typer.Option(help="Where run folders are.")] = Path("runs"),
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks.")] = 0.5,
    cluster: ClusterOption = None,
    certificates: CertificatesOption = None,
) -> None:
    """Show a run as `fleet soak` does until it ends; takes no part in it. Exits 0.

    A table on a terminal; lines where stdout is none, or with CI, NO_COLOR or TERM=dumb.
    Example: fleet watch runs/latest
    """
    from orchestrator.cli.live import watch_run
    from orchestrator.cli.owner import owner_lives
    from orchestrator.cli.run_argument import run_folder
    from orchestrator.runlog.layout import RunPaths

    if cluster is not None:
        from orchestrator.cli.status import status

        status(run, output, json=False, follow=every, cluster=cluster, certificates=certificates)
        return
    watch_run(RunPaths(run_folder(run, output)), every, owner_lives)
