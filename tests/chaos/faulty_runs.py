"""One run on served phones of which some have a fault at a phase, and one has none."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.virtual.client import ask
from tests.chaos.cells import settings_of
from tests.end_to_end.fleet_process import FinishedRun, finish, read_json, start_fleet, wait_for

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

    from tests.chaos.cells import Cell, Step

# A smoke in a few seconds; nothing of it is compared between runs.
WORKLOAD = (
    *("--duration", "30s"),
    *("--set", "workload.decode_tokens_per_s=600"),
    *("--set", "workload.stop_after_tokens=2400"),
    *("--set", "workload.warn_at_tokens=[500]"),
    *("--set", "workload.ballast_from_token=1200"),
    *("--set", "workload.ballast_to_token=1700"),
    *("--set", "evidence.report_wait_s=5"),
)
# What the session says when a phase of ours begins, and how many records the app has sent by then.
_SESSION_PHASE = {"install": "install", "launch": "developer", "collect": "collect"}
_DECODE_BYTES = 40_000
_LIMIT_S = 420.0


@dataclass(frozen=True, slots=True)
class FaultyRun:
    """What came of it."""

    run: FinishedRun
    ends: dict[str, tuple[str, str]]  # outcome and cause by the phone's number in the farm
    restarted: set[str]  # numbers of the phones that are seen to have restarted
    lost_records: dict[str, int]  # journalled on the phone, missing in the telemetry
    took_s: float


def number_of(cell_index: int) -> str:
    """Return the name that a farm gives the phone of a cell."""
    return f"vp-{cell_index + 1:02d}"


def run_cells(cells: Sequence[Cell], folder: Path, farm: dict[str, Any]) -> FaultyRun:
    """Run cells side by side: the first phone of the farm has the first, and so on."""
    folder.mkdir(exist_ok=True)
    output = folder / "runs"
    udids = {number_of(index): phone["udid"] for index, phone in enumerate(farm["phones"])}
    waiting = {number_of(index): list(cell.steps) for index, cell in enumerate(cells)}
    began_s = time.monotonic()
    for phone, steps in waiting.items():
        while steps and steps[0].phase == "discover":
            _inject(steps.pop(0), phone, farm)
    process = start_fleet(
        folder,
        *("soak", *WORKLOAD, "--output", str(output)),
        USBMUXD_SOCKET_ADDRESS=farm["usbmux"],
    )
    try:
        _inject_in_time(process, waiting, udids, output, farm)
    except BaseException:
        process.kill()
        process.communicate(timeout=10)
        raise
    run = finish(process, output, limit_s=_LIMIT_S)
    ask(Path(farm["control"]), do="mend", phone="all", kind=None)
    numbers = {udid: number for number, udid in udids.items()}
    ends = {numbers[p["udid"]]: (p["outcome"], p["cause"]) for p in run.summary["phones"]}
    restarted = {number for udid, number in numbers.items() if _restarted(run, udid)}
    return FaultyRun(run, ends, restarted, _lost_records(run), time.monotonic() - began_s)


def _inject_in_time(
    process: subprocess.Popen[str],
    waiting: dict[str, list[Step]],
    udids: dict[str, str],
    output: Path,
    farm: dict[str, Any],
) -> None:
    """Inject every step when its phone reaches its phase; what a dead session never reaches not."""

    def look() -> bool:
        for phone, steps in waiting.items():
            while steps and _reached(output, udids[phone], steps[0].phase):
                _inject(steps.pop(0), phone, farm)
        return process.poll() is not None or not any(waiting.values())

    wait_for(look, _LIMIT_S, "every phase of every phone")


def _inject(step: Step, phone: str, farm: dict[str, Any]) -> None:
    ask(Path(farm["control"]), do="fault", phone=phone, **settings_of(step.injection))


def _reached(output: Path, udid: str, phase: str) -> bool:
    device = next(output.glob(f"latest/devices/*-{udid[-8:]}"), None)
    stream = device / "attempts/1/launches/1/stream.ndjson" if device else None
    sent = stream.stat().st_size if stream and stream.exists() else 0
    if phase == "decode":
        return sent > _DECODE_BYTES
    if phase == "load":
        return sent > 0
    return _SESSION_PHASE[phase] in _phases(output, udid)


def _phases(output: Path, udid: str) -> list[str]:
    events = output / "latest" / "events.ndjson"
    if not events.exists():
        return []
    whole = [line for line in events.read_text().splitlines(keepends=True) if line.endswith("\n")]
    lines = [json.loads(line) for line in whole]
    found = [line for line in lines if line["kind"] == "phase" and line["udid"] == udid]
    return [line["facts"]["name"] for line in found]


def _restarted(run: FinishedRun, udid: str) -> bool:
    evidence = run.path.glob(f"devices/*-{udid[-8:]}/attempts/*/evidence.json")
    return any(read_json(path)["rebooted"] for path in evidence)


def _lost_records(run: FinishedRun) -> dict[str, int]:
    """Count the records of pulled journals that the telemetry lacks, by folder."""
    lost = {}
    for device in run.devices():
        attempts = sorted(device.glob("attempts/*"), key=lambda path: int(path.name))
        kept = _seqs(device / "telemetry.ndjson")
        written = _seqs(attempts[-1] / "launches/1/journal.ndjson") if attempts else set()
        written |= _seqs(attempts[-1] / "launches/1/stream.ndjson") if attempts else set()
        lost[device.name] = len(written - kept)
    return lost


def _seqs(path: Path) -> set[tuple[str, int]]:
    if not path.exists():
        return set()
    found = set()
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            record = json.loads(line)
            found.add((record["launch"], record["seq"]))
        except (ValueError, TypeError, KeyError):
            continue  # torn, or an impostor's
    return found
