"""`fleet resume [RUN]`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.cluster_access import (  # noqa: TC001 - typer reads them
    CertificatesOption,
    ClusterOption,
)

app = typer.Typer(rich_markup_mode=None)


@app.command()
def resume(
    run: Annotated[
        str | None, typer.Argument(help="A run directory or id; default the latest.")
    ] = None,
    output: Annotated[Path, typer.Option(help="Where run folders are.")] = Path("runs"),
    json: Annotated[bool, typer.Option("--json", help="Print summary.json on stdout.")] = False,
    cluster: ClusterOption = None,
    certificates: CertificatesOption = None,
) -> None:
    """Go on with a run whose process died: its phones and apps went on without it.

    Real phones and those of `fleet virtual serve` outlive a run; each app goes on for the 30
    minutes of its keeper's lease. The run ends as if nothing had happened, with the exit code of
    `fleet soak`. A run of a cluster is attached to its hosts again, which went on with it; the
    scheduler is the one it had, or that of --cluster. Example: fleet resume runs/latest
    """
    import anyio

    from orchestrator.cli.conclusion import conclude
    from orchestrator.cli.resuming import LeftRun, resume_run
    from orchestrator.cli.run_argument import run_folder

    folder = run_folder(run, output)
    from orchestrator.cli.cluster_resume import cluster_of, resume_cluster_run

    address = cluster or cluster_of(folder)
    if address is not None:
        sys.exit(resume_cluster_run(folder, address, certificates, stop=False, json=json))
    left = LeftRun.read(folder)
    summary = anyio.run(resume_run, left)
    sys.exit(conclude(left.paths.root, summary, left.config, json=json))
