"""One run on two served phones, of which one has a fault at a phase."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.virtual.client import ask
from tests.chaos.killed_runs import WORKLOAD
from tests.end_to_end.fleet_process import FinishedRun, finish, start_fleet, wait_for

if TYPE_CHECKING:
    from tests.chaos.cells import Cell

VICTIM, HEALTHY = "vp-01", "vp-02"
# What the session says when a phase of ours begins, and how many records the app has sent by then.
_SESSION_PHASE = {"install": "install", "launch": "developer", "load": "soak", "decode": "soak"}
_DECODE_BYTES = 40_000


@dataclass(frozen=True, slots=True)
class FaultyRun:
    """What came of it."""

    run: FinishedRun
    ends: dict[str, tuple[str, str]]  # outcome and cause by alias
    lost_records: dict[str, int]  # journalled on the phone, missing in the telemetry, by alias
    took_s: float


def run_cell(cell: Cell, folder: Path, farm: dict[str, Any]) -> FaultyRun:
    """Run a cell."""
    folder.mkdir(exist_ok=True)
    output = folder / "runs"
    began_s = time.monotonic()
    if cell.phase == "discover":
        _inject(cell, farm)
    process = start_fleet(
        folder,
        *("soak", *WORKLOAD, "--output", str(output)),
        USBMUXD_SOCKET_ADDRESS=farm["usbmux"],
    )
    try:
        if cell.phase != "discover":
            wait_for(lambda: _reached(output, cell.phase), 90, f"the phase {cell.phase}")
            _inject(cell, farm)
    except BaseException:
        process.kill()
        process.communicate(timeout=10)
        raise
    run = finish(process, output, limit_s=300)
    ask(Path(farm["control"]), do="mend", phone="all", kind=None)
    ends = {phone["alias"]: (phone["outcome"], phone["cause"]) for phone in run.summary["phones"]}
    return FaultyRun(run, ends, _lost_records(run), time.monotonic() - began_s)


def _inject(cell: Cell, farm: dict[str, Any]) -> None:
    injection = cell.injection
    ask(
        Path(farm["control"]),
        do="fault",
        phone=VICTIM,
        kind=injection.kind,
        settings=injection.settings,
        for_s=injection.for_s,
    )


def _reached(output: Path, phase: str) -> bool:
    device = next(output.glob(f"latest/devices/{VICTIM}-*"), None)
    stream = device / "attempts/1/launches/1/stream.ndjson" if device else None
    sent = stream.stat().st_size if stream and stream.exists() else 0
    if phase == "decode":
        return sent > _DECODE_BYTES
    if phase == "load":
        return sent > 0
    wanted = "collect" if phase == "collect" else _SESSION_PHASE[phase]
    return wanted in _phases(output)


def _phases(output: Path) -> list[str]:
    events = output / "latest" / "events.ndjson"
    plan = output / "latest" / "plan.json"
    if not (events.exists() and plan.exists()):
        return []
    udids = {p["alias"]: p["udid"] for p in json.loads(plan.read_bytes())["phones"]}
    lines = [json.loads(line) for line in events.read_text().splitlines(keepends=True) if line[-1:]]
    return [
        line["facts"]["name"]
        for line in lines
        if line["kind"] == "phase" and line["udid"] == udids.get(VICTIM)
    ]


def _lost_records(run: FinishedRun) -> dict[str, int]:
    """Count the records of pulled journals that the telemetry lacks, by alias."""
    lost = {}
    for device in run.devices():
        attempts = sorted(device.glob("attempts/*"), key=lambda path: int(path.name))
        kept = _seqs(device / "telemetry.ndjson")
        written = _seqs(attempts[-1] / "launches/1/journal.ndjson") if attempts else set()
        written |= _seqs(attempts[-1] / "launches/1/stream.ndjson") if attempts else set()
        lost[device.name.rpartition("-")[0]] = len(written - kept)
    return lost


def _seqs(path: Path) -> set[tuple[str, int]]:
    if not path.exists():
        return set()
    lines = path.read_bytes().splitlines(keepends=True)
    whole = [json.loads(line) for line in lines if line.endswith(b"\n") and line.startswith(b"{")]
    return {(line["launch"], line["seq"]) for line in whole}
