"""`fleet status [RUN]`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.cluster_access import CertificatesOption, ClusterOption, cluster_access

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.cli.cluster_access import ClusterAccess
    from orchestrator.soak.progress import PhoneProgress, RunProgress

app = typer.Typer(rich_markup_mode=None)


@app.command()
def status(
    run: Annotated[
        str | None, typer.Argument(help="A run directory or id; default the latest.")
    ] = None,
    output: Annotated[Path, typer.Option(help="Where run folders are.")] = Path("runs"),
    json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    follow: Annotated[
        float | None, typer.Option(min=0.2, help="Print again every so many seconds until it ends.")
    ] = None,
    cluster: ClusterOption = None,
    certificates: CertificatesOption = None,
) -> None:
    """Show how far a run is: its phones' phases, tokens and time left.

    With --cluster the hosts are asked, for a run by its id. Exits 0 whatever the run says.
    Examples: fleet status; fleet status runs/latest --follow 5
    """
    if cluster is not None:
        _show_cluster(cluster_access(cluster, certificates, option="--cluster"), run, json, follow)
        return
    import msgspec

    from orchestrator.cli.run_argument import run_folder
    from orchestrator.runlog.layout import RunPaths

    paths = RunPaths(run_folder(run, output))
    while True:
        progress = _read(paths.root)
        if json:
            print(msgspec.json.encode(progress).decode(), flush=True)
        else:
            print("\n".join(_lines(progress, time.time())), flush=True)
        if follow is None or progress.state != "running":
            return
        time.sleep(follow)


def _show_cluster(access: ClusterAccess, run: str | None, json: bool, follow: float | None) -> None:
    import anyio
    import msgspec

    from orchestrator.cli.cluster_status import cluster_parts, part_lines

    run_id = None if run is None else Path(run).resolve().name
    while True:
        parts = anyio.run(cluster_parts, access, run_id)
        if json:
            print(msgspec.json.encode(parts).decode(), flush=True)
        else:
            print("\n".join(part_lines(parts)) or "no host knows the run", flush=True)
        if follow is None or all(part.is_over for part in parts):
            return
        time.sleep(follow)


def _read(folder: Path) -> RunProgress:
    from orchestrator.cli.owner import owner_lives
    from orchestrator.runlog.documents import RunDocument
    from orchestrator.runlog.files import read_document
    from orchestrator.runlog.layout import RunPaths
    from orchestrator.soak.progress import run_progress

    paths = RunPaths(folder)
    lives = owner_lives(read_document(paths.run, RunDocument))
    return run_progress(paths, time.time(), owner_lives=lives)


def _lines(progress: RunProgress, now_s: float) -> Iterator[str]:
    advice = "  (its process died: `fleet resume` goes on with it)"
    since_s = (progress.ended_s or now_s) - progress.started_s
    yield (
        f"run {progress.run_id}  {progress.state}  {since_s:.0f} s"
        f"{advice if progress.state == 'left' else ''}"
    )
    for phone in progress.phones:
        yield phone_line(phone)


def phone_line(phone: PhoneProgress) -> str:
    """Return what a person sees of one phone."""
    tokens = "" if phone.tokens_total is None else f"{phone.tokens_total} tokens"
    left = "" if phone.inference_left_s is None else f"about {phone.inference_left_s:.0f} s left"
    attempt = "" if phone.attempt == 1 else f"attempt {phone.attempt}"
    age = ""
    if phone.phase == "soak" and phone.last_record_age_s is not None:
        age = f"last record {phone.last_record_age_s:.0f} s ago"
    return f"{phone.alias:<16} {phone.phase:<10} {tokens:<14} {left:<18} {age} {attempt}".rstrip()
