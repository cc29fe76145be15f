"""Runs on served phones whose orchestrator is killed at a random instant and then resumed."""

from __future__ import annotations

import random
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.end_to_end.fleet_process import FinishedRun, records, run_fleet, start_fleet, wait_for

if TYPE_CHECKING:
    from pathlib import Path

TOKENS = 2400
# Everything is at its token, so that all tokens of two runs are equal. The scenario asks for no
# warning of the kernel's own, which would come by time; the warnings that are added here evict.
WORKLOAD = (
    *("--scenario", "budget-edge"),
    *("--duration", "30s"),
    *("--set", "workload.decode_tokens_per_s=600"),
    *("--set", f"workload.stop_after_tokens={TOKENS}"),
    *("--set", "workload.warn_at_tokens=[500,1100,1700]"),
    *("--set", "workload.sample_period_ms=200"),  # so many samples that none decides a check
    *("--set", "evidence.report_wait_s=5"),
)
NO_PHASE = "start"
MOST_TRIES = 5


@dataclass(frozen=True, slots=True)
class PhoneEnd:
    """What must be equal in a disturbed run and an undisturbed one."""

    outcome: str
    cause: str
    checks: tuple[tuple[str, str], ...]
    ids: tuple[int, ...]  # of all tokens


@dataclass(frozen=True, slots=True)
class Kill:
    """When an orchestrator was killed, and what followed."""

    after_s: float
    span_s: float  # what a run takes, as far as is known now
    phases: tuple[str, ...]
    run: FinishedRun
    resumed_s: float


def soak(folder: Path, usbmux: str) -> tuple[FinishedRun, float]:
    """Soak undisturbed; return the run and the seconds from its directory to its end."""
    output = folder / "runs"
    process = _started(folder, usbmux)
    wait_for((output / "latest").exists, 60, "the run directory")
    began_s = time.monotonic()
    stdout, stderr = process.communicate(timeout=240)
    took_s = time.monotonic() - began_s
    return FinishedRun(output, process.returncode, stdout, stderr), took_s


def killed_and_resumed(folder: Path, usbmux: str, share: float, span_s: float) -> Kill:
    """Kill a run when a share of its time has passed since its directory was made; resume it.

    Args:
        folder: For this run, and for others that were over before they could be killed.
        usbmux: Of the served phones.
        share: Of the run's time, 0 to 1.
        span_s: What such a run took; a machine that is less busy now takes less.
    """
    for number in range(MOST_TRIES):
        attempt = folder / f"try-{number}"
        attempt.mkdir(parents=True)
        output = attempt / "runs"
        process = _started(attempt, usbmux)
        wait_for((output / "latest").exists, 60, "the run directory")
        began_s = time.monotonic()
        if _ended_within(process, share * span_s):
            span_s = time.monotonic() - began_s
            continue
        process.kill()
        process.communicate(timeout=10)
        left = FinishedRun(output, -9, "", "")
        phases = tuple(str(event["facts"]["name"]) for event in left.events("phase")[-2:])
        began_s = time.monotonic()
        resumed = run_fleet(attempt, "resume", "--output", str(output), limit_s=240)
        took_s = time.monotonic() - began_s
        return Kill(share * span_s, span_s, phases or (NO_PHASE,), resumed, took_s)
    raise AssertionError(f"{MOST_TRIES} runs in a row were over before they could be killed")


def _ended_within(process: subprocess.Popen[str], limit_s: float) -> bool:
    try:
        process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def ends_of(run: FinishedRun) -> dict[str, PhoneEnd]:
    """Return the ends of a run's phones by UDID; every (launch, seq) is there once."""
    devices = {device.name[-8:]: device for device in run.devices()}
    return {
        phone["udid"]: PhoneEnd(
            phone["outcome"],
            phone["cause"],
            tuple((check["id"], check["result"]) for check in phone["checks"]),
            _ids(_complete(records(devices[phone["udid"][-8:]]))),
        )
        for phone in run.summary["phones"]
    }


def instants(seed: int, count: int) -> list[float]:
    """Return random shares of a run's time, one in each of `count` equal parts of it."""
    chance = random.Random(seed)
    return [(part + chance.random()) / count for part in range(count)]


def _started(folder: Path, usbmux: str) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    output = str(folder / "runs")
    return start_fleet(folder, "soak", *WORKLOAD, "--output", output, USBMUXD_SOCKET_ADDRESS=usbmux)


def _complete(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    assert len({line["launch"] for line in lines}) == 1
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert lines[-1]["kind"] == "bye"
    return lines


def _ids(lines: list[dict[str, Any]]) -> tuple[int, ...]:
    return tuple(one for line in lines if line["kind"] == "tokens" for one in line["ids"])
