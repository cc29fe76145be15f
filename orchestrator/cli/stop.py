"""`fleet stop [RUN]`."""

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
def stop(
    run: Annotated[
        str | None, typer.Argument(help="A run directory or id; default the latest.")
    ] = None,
    output: Annotated[Path, typer.Option(help="Where run folders are.")] = Path("runs"),
    json: Annotated[bool, typer.Option("--json", help="Print summary.json on stdout.")] = False,
    cluster: ClusterOption = None,
    certificates: CertificatesOption = None,
) -> None:
    """Stop a run in order: apps end, everything is collected, the report is written.

    A run whose process died is taken over for it. Exits 0 when a living run has ended, else with
    the exit code of the run. With --cluster and the id of a run that is not here, its hosts are
    told and nothing is collected. Example: fleet stop runs/latest
    """
    if cluster is not None and run is not None and not _is_here(run, output):
        from orchestrator.cli.cluster_resume import stop_elsewhere

        stop_elsewhere(run, cluster, certificates)
        return
    from functools import partial

    import anyio

    from orchestrator.cli.conclusion import conclude
    from orchestrator.cli.ending import end_owner
    from orchestrator.cli.printing import note
    from orchestrator.cli.resuming import LeftRun, resume_run
    from orchestrator.cli.run_argument import run_folder
    from orchestrator.runlog.documents import RunDocument
    from orchestrator.runlog.files import read_document
    from orchestrator.runlog.layout import RunPaths
    from orchestrator.soak.locks import holders, lock_folder

    paths = RunPaths(run_folder(run, output))
    document = read_document(paths.run, RunDocument)
    if document.ended_s is not None:
        note(f"run {document.run_id} had ended")
        return
    owners = [owner for owner in holders(lock_folder()) if owner.run_id == document.run_id]
    if owners:
        # A host of the cluster may be this one: its process has the same run.
        ours = [owner for owner in owners if owner.pid == document.owner_pid]
        end_owner((ours or owners)[0], kick=False)
        note(f"run {document.run_id} has ended")
        return
    address = cluster or document.cluster
    if address is not None:
        from orchestrator.cli.cluster_resume import resume_cluster_run

        sys.exit(resume_cluster_run(paths.root, address, certificates, stop=True, json=json))
    left = LeftRun.read(paths.root)
    summary = anyio.run(partial(resume_run, left, stop=True))
    sys.exit(conclude(left.paths.root, summary, left.config, json=json))


def _is_here(run: str, output: Path) -> bool:
    return any((folder / "run.json").exists() for folder in (Path(run), output / run))
