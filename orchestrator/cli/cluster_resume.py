"""Takes up a run of a cluster whose coordinator died; a single host's run imports no Dask here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.cli.printing import note
from orchestrator.domain.counting import counted
from orchestrator.domain.errors import HeldError
from orchestrator.runlog.documents import RunDocument
from orchestrator.runlog.files import read_document
from orchestrator.runlog.layout import RunPaths
from orchestrator.runlog.manifest import write_manifest
from orchestrator.soak.locks import holder_of, lock_folder

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.domain.outcome import ExitCode


def cluster_of(folder: Path) -> str | None:
    """Return the scheduler of a run, None for a run of a single host.

    Raises:
        RunDirectoryError: If this is no run directory.
    """
    return read_document(RunPaths(folder).run, RunDocument).cluster


def resume_cluster_run(
    folder: Path, address: str, certificates: Path | None, *, stop: bool, json: bool
) -> ExitCode:
    """Attach to the hosts of a run again, bring it to its end, and conclude it.

    Raises:
        FleetError: If it cannot go on.
    """
    from functools import partial

    import anyio

    from orchestrator.cli.cluster_access import cluster_access
    from orchestrator.cli.conclusion import conclude
    from orchestrator.cli.lineage import reported

    access = cluster_access(address, certificates, option="--cluster")
    from orchestrator.cli.cluster_run import ClusterRun, coordinator_key
    from orchestrator.cluster.mirror import joined_manifest
    from orchestrator.config.load import load_config

    document = read_document(RunPaths(folder).run, RunDocument)
    owner = holder_of(coordinator_key(document.run_id), lock_folder())
    if owner is not None:
        raise HeldError(f"run {document.run_id} goes on in process {owner.pid}")
    if document.ended_s is None:
        run = ClusterRun.left(folder, access)
        note(f"run {document.run_id}: resumed, {counted(len(run.plan.phones), 'phone')}")
        root, summary = anyio.run(partial(run.carried_out, stop=stop))
    else:
        note(f"run {document.run_id} had ended: its report is made again")
        write_manifest(folder, joined_manifest(folder, [part.host for part in document.parts]))
        root, summary = folder, reported(folder)
    return conclude(root, summary, load_config(RunPaths(root).config), json=json)


def stop_elsewhere(run_id: str, address: str, certificates: Path | None) -> None:
    """Have the hosts end a run that another coordinator began.

    Raises:
        RunDirectoryError: If no host carries it out.
    """
    import anyio

    from orchestrator.cli.cluster_access import cluster_access

    access = cluster_access(address, certificates, option="--cluster")
    from orchestrator.cli.cluster_status import stop_in_cluster

    hosts = anyio.run(stop_in_cluster, access, run_id)
    note(f"told {', '.join(hosts)}: the run ends in order; `fleet resume` collects it")
