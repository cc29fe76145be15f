"""Joins run directories into a new one; needs neither phones nor a cluster."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cluster.join import joined_plan, joined_run
from orchestrator.cluster.joining import read_part, seal, write_events
from orchestrator.cluster.mirror import place_of
from orchestrator.cluster.run_files import listing
from orchestrator.config.fields import check_alias
from orchestrator.domain.errors import RunDirectoryError, UsageError
from orchestrator.runlog.files import replace_file, write_document
from orchestrator.runlog.layout import RunPaths
from orchestrator.soak.run_directory import new_run_id, point_latest

if TYPE_CHECKING:
    from collections.abc import Sequence


def merged(names: Sequence[str], output: Path) -> Path:
    """Make the joined run directory, report apart, and return it.

    Args:
        names: `[NAME=]RUN` each.
        output: Where it goes.

    Raises:
        UsageError: If the runs cannot be joined; nothing is made then.
        RunDirectoryError: If one is none.
    """
    folders = [_named(name) for name in names]
    hosts = [host for host, _ in folders]
    if len(folders) < 2:
        raise UsageError("a merge needs two runs or more", remedy="fleet merge a=RUN b=RUN")
    if len(set(hosts)) != len(hosts):
        raise UsageError("two runs have the same name", remedy="Name them: a=RUN b=RUN")
    parts = [read_part(folder, host) for host, folder in folders]
    for part in parts:
        if part.run.parts:
            raise UsageError(f"{part.host} was joined already", remedy="Merge its parts instead")
    run_id = new_run_id(time.time())
    plan, run = joined_plan(run_id, parts), joined_run(run_id, parts, sys.argv[1:])
    root = output / run_id
    try:
        root.mkdir(parents=True)
        for host, folder in folders:
            _copy(folder, root, host)
        write_document(RunPaths(root).plan, plan)
        config = RunPaths(folders[0][1]).config
        if config.exists():
            replace_file(RunPaths(root).config, config.read_bytes())
        write_events(root, parts)
        seal(root, run, hosts, whole=run.ended_s is not None)
    except OSError as error:
        shutil.rmtree(root, ignore_errors=True)  # half a join is none
        raise UsageError(f"{root} cannot be written: {error.strerror or error}") from error
    point_latest(output, run_id)
    return root


def _named(text: str) -> tuple[str, Path]:
    """Return the host's name and the run; without a name the run's id is one."""
    name, separator, place = text.partition("=")
    if separator and not Path(text).exists():
        folder = Path(place)
    else:
        name, folder = "", Path(text)
    if not RunPaths(folder).run.exists():
        raise RunDirectoryError(f"{folder} is not a run directory: run.json is missing")
    try:
        return check_alias(name or folder.resolve().name), folder.resolve()
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}") from error


def _copy(folder: Path, root: Path, host: str) -> None:
    for state in listing(folder):
        target = root / place_of(host, state.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / state.name, target)
