"""History made again from the run directories, beside the old file, then put in its place."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.domain.errors import FleetError
from orchestrator.history.reading import read_entry
from orchestrator.history.store import History, HistoryError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild did."""

    recorded: tuple[str, ...]  # run ids
    left_out: tuple[str, ...]  # one sentence per folder that is no run with verdicts
    baselines_lost: bool  # the old file could not tell them
    old_file: Path | None  # where the old database is kept


def rebuild(path: Path, runs: Path) -> Rebuilt:
    """Make the database of a folder of runs again; the old file is kept under another name.

    Raises:
        HistoryError: If the new database cannot be written.
    """
    fresh = History(path.with_name(f".{path.name}.new"))
    fresh.path.unlink(missing_ok=True)
    recorded, left_out = [], []
    for root in sorted(folder for folder in runs.iterdir() if (folder / "run.json").exists()):
        if root.is_symlink():
            continue  # `latest`
        try:
            entry = read_entry(root)
        except FleetError as error:
            left_out.append(str(error))
            continue
        fresh.record(entry)
        recorded.append(entry.run_id)
    if path.exists():
        _carry_calibrations(History(path), fresh)
    lost = not _carry_baselines(History(path), fresh, recorded) if path.exists() else False
    old_file = _set_aside(path)
    fresh.runs(newest=0)  # there is a file, even where there is no run
    fresh.path.replace(path)
    return Rebuilt(tuple(recorded), tuple(left_out), lost, old_file)


def _carry_baselines(old: History, fresh: History, recorded: list[str]) -> bool:
    try:
        baselines = old.baselines()
    except HistoryError:
        return False
    for name, run_ids in baselines.items():
        fresh.set_baseline(name, [run_id for run_id in run_ids if run_id in recorded])
    return True


def _carry_calibrations(old: History, fresh: History) -> None:
    """Take calibrations over; a file that cannot tell them lost what `fleet calibrate` measures."""
    with suppress(HistoryError):
        for calibration in old.calibrations().values():
            fresh.calibrate(calibration)


def _set_aside(path: Path) -> Path | None:
    if not path.exists():
        return None
    kept = path.with_name(f"{path.name}.{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.old")
    return path.rename(kept)
