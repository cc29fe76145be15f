"""Process limits that were read on real phones: by a calibration, else by the newest run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.cli.calibrations import calibrations
from orchestrator.domain.errors import RunDirectoryError
from orchestrator.history.store import DATABASE_NAME
from orchestrator.mlpackage.budget.phones import MeasuredLimit
from orchestrator.runlog.documents import VerdictDocument
from orchestrator.runlog.files import read_document
from orchestrator.runlog.layout import RunPaths
from orchestrator.runlog.telemetry import Hello

if TYPE_CHECKING:
    from pathlib import Path

_NEWEST_RUNS: Final = 200
_HELLO_LIMIT_BYTES: Final = 64 * 1024


def measured_limits(runs: Path) -> dict[tuple[str, bool], MeasuredLimit]:
    """Return the newest limit per phone model and entitlement; virtual phones measure nothing.

    Args:
        runs: The folder of the runs; one that does not exist has no limits.
    """
    found: dict[tuple[str, bool], MeasuredLimit] = {}
    for key, calibration in calibrations(runs / DATABASE_NAME).items():  # oldest first
        if not key.virtual and calibration.limit_bytes is not None:
            origin = f"calibration {calibration.runs[0]}" if calibration.runs else "a calibration"
            measured = MeasuredLimit(calibration.limit_bytes, origin)
            found[calibration.model, key.entitled] = measured
    folders = sorted((path for path in runs.glob("*/devices") if path.is_dir()), reverse=True)
    for folder in folders[:_NEWEST_RUNS]:
        if folder.parent.is_symlink():  # `latest`
            continue
        for directory in sorted(folder.iterdir()):
            limit = _limit(folder.parent, directory.name)
            if limit is not None:
                found.setdefault(limit[0], limit[1])
    return found


def _limit(run: Path, directory: str) -> tuple[tuple[str, bool], MeasuredLimit] | None:
    paths = RunPaths(run).device(directory)
    try:
        verdict = read_document(paths.verdict, VerdictDocument)
        with paths.telemetry.open("rb") as stream:
            hello = msgspec.json.decode(stream.readline(_HELLO_LIMIT_BYTES), type=Hello)
    except (RunDirectoryError, OSError, msgspec.MsgspecError):
        return None
    if verdict.virtual or verdict.limit_bytes is None:
        return None
    return (verdict.model, hello.entitled), MeasuredLimit(verdict.limit_bytes, run.name)
