"""`fleet prune`."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.domain.counting import counted
from orchestrator.domain.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.soak.pruning import OldRun

app = typer.Typer(rich_markup_mode=None)


@app.command()
def prune(
    older_than: Annotated[str, typer.Option(help="Age: 30d, 12h.")] = "30d",
    newest: Annotated[int, typer.Option(min=0, help="So many stay, whatever their age.")] = 10,
    output: Annotated[Path, typer.Option(help="Where run folders are.")] = Path("runs"),
    signoffs: Annotated[
        list[Path] | None, typer.Option(help="Bundles; default signoff-* here and beside --output.")
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete; without, only list.")] = False,
) -> None:
    """List old runs, or delete them.

    A run that a sign-off or a baseline rests on stays, and so does one that has not ended.
    Example: fleet prune --older-than 30d --delete
    """
    from orchestrator.cli.printing import note
    from orchestrator.soak.pruning import KeepRule, prunable

    bundles = signoffs if signoffs is not None else _bundles(output)
    rule = KeepRule(
        older_than_s=_age_s(older_than),
        newest=newest,
        signed=_signed(bundles),
        baselines=_baselines(output),
    )
    going = prunable(list(_runs(output)), rule, time.time())
    for run in going:
        print(f"{run.run_id}  {run.size_bytes / 1e6:.1f} MB  {'deleted' if delete else 'may go'}")
        if delete:
            shutil.rmtree(run.folder)
    total_mb = sum(run.size_bytes for run in going) / 1e6
    offer = "" if delete else "; --delete deletes them"
    note(f"{counted(len(going), 'run')}, {total_mb:.1f} MB{offer}")


def _runs(output: Path) -> Iterator[OldRun]:
    from orchestrator.domain.errors import RunDirectoryError
    from orchestrator.runlog.documents import RunDocument
    from orchestrator.runlog.files import read_document
    from orchestrator.runlog.layout import RunPaths
    from orchestrator.soak.pruning import OldRun

    for folder in sorted(output.glob("*")):
        if folder.is_symlink() or not folder.is_dir():
            continue
        try:
            run = read_document(RunPaths(folder).run, RunDocument)
        except RunDirectoryError:
            continue  # somebody else's folder
        files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        size_bytes = sum(path.stat().st_size for path in files)
        yield OldRun(folder, run.run_id, run.started_s, run.ended_s is not None, size_bytes)


def _bundles(output: Path) -> list[Path]:
    return [*Path().glob("signoff-*"), *output.absolute().parent.glob("signoff-*")]


def _signed(bundles: list[Path]) -> set[str]:
    """Return the ids of the runs whose evidence a bundle holds."""
    return {path.name for bundle in bundles for path in (bundle / "evidence").glob("*")}


def _baselines(output: Path) -> set[str]:
    from orchestrator.history.store import DATABASE_NAME, History

    database = output / DATABASE_NAME
    if not database.exists():
        return set()
    return {run for runs in History(database).baselines().values() for run in runs}


def _age_s(text: str) -> float:
    from orchestrator.config.fields import parse_duration
    from orchestrator.soak.pruning import SECONDS_PER_DAY

    try:
        if text.endswith("d"):
            return float(text[:-1]) * SECONDS_PER_DAY
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--older-than: {text!r} is no age like 30d or 12h") from error
