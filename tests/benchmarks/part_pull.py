"""3b. Pulling reports off a phone. Size: reports.

Ours and the library's manager run in this process, on a session that is open: starting Python is
part 1. The independent tool is a program and starts in milliseconds.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pymobiledevice3.lockdown import create_using_usbmux
from pymobiledevice3.services.crash_reports import CrashReportsManager

from orchestrator.device.pmd3 import reports
from tests.benchmarks.full_reports import full_jetsam
from tests.benchmarks.processes import farm_of, found, run
from tests.benchmarks.samples import OURS, Row, Sample, best, of, why_missing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pymobiledevice3.lockdown import UsbmuxLockdownClient

    from tests.benchmarks.scale import Scale

NAME: Final = "pull"
FASTER: Final = 2.0
LIBRARY: Final = "pymobiledevice3 CrashReportsManager.pull"
TOOL: Final = "idevicecrashreport"
GROWTH: Final = (("pull", "wall_s", "seconds by reports"),)


def measure(scale: Scale) -> list[Sample]:
    """Fill one phone and pull everything with each tool in turn."""
    samples: list[Sample] = []
    for count in scale.pulled_reports:
        with farm_of(1) as (state, _, (udid,)):
            (folder,) = state.rglob("CrashReports")
            _fill(folder, count)
            present = sum(path.is_file() for path in folder.rglob("*"))
            for _ in range(max(1, scale.rounds // 2)):
                for subject, pull in ((OURS, _here), (LIBRARY, _there)):
                    taken = asyncio.run(_timed(udid, pull, present))
                    samples.append(Sample(NAME, "pull", subject, count, taken))
                samples.append(_with_tool(count, udid, present))
    return samples


def _fill(folder: Path, count: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        name = f"JetsamEvent-2026-01-10-12{number // 60:02d}{number % 60:02d}.ips"
        (folder / name).write_bytes(full_jetsam())


async def _timed(
    udid: str, pull: Callable[[UsbmuxLockdownClient, Path], Awaitable[object]], expected: int
) -> dict[str, float]:
    client = await create_using_usbmux(serial=udid, autopair=False)
    try:
        with tempfile.TemporaryDirectory() as into:
            began_s, began_cpu_s = time.perf_counter(), time.process_time()
            await pull(client, Path(into))
            taken = {
                "wall_s": time.perf_counter() - began_s,
                "cpu_s": time.process_time() - began_cpu_s,
            }
            _require(Path(into), expected)
    finally:
        await client.close()
    return taken


async def _here(client: UsbmuxLockdownClient, into: Path) -> object:
    return await reports.pull(client, into, set(), reports.Allowance())


async def _there(client: UsbmuxLockdownClient, into: Path) -> object:
    async with CrashReportsManager(client) as manager:
        return await manager.pull(str(into), progress_bar=False)


def _with_tool(count: int, udid: str, expected: int) -> Sample:
    if found(TOOL) is None:
        return Sample(NAME, "pull", TOOL, count, note="not installed")
    with tempfile.TemporaryDirectory() as into:
        try:
            taken = run([TOOL, "-u", udid, "-k", into])
        except subprocess.CalledProcessError as error:
            return Sample(NAME, "pull", TOOL, count, note=f"exit {error.returncode}")
        _require(Path(into), expected)
    return Sample(NAME, "pull", TOOL, count, taken)


def _require(into: Path, expected: int) -> None:
    pulled = sum(path.is_file() for path in into.rglob("*"))
    if pulled < expected:
        raise RuntimeError(f"{pulled} of {expected} reports were pulled")


def rows(samples: Sequence[Sample]) -> list[Row]:
    """Return the lines of the table, for the most reports."""
    count = max((one.size for one in samples), default=0)
    ours = of(samples, "pull", size=count)
    wall_s, cpu_s = best(ours, "wall_s"), best(ours, "cpu_s")
    if wall_s is None or cpu_s is None:
        return []
    name, here = f"pull {count:g} full reports", f"{wall_s:.2f} s (CPU {cpu_s:.2f})"
    lines = []
    for peer in (LIBRARY, TOOL):
        theirs = of(samples, "pull", peer, count)
        there_s, there_cpu = best(theirs, "wall_s"), best(theirs, "cpu_s")
        goal = f">= {FASTER:g} x faster"
        if there_s is None or there_cpu is None:
            note = why_missing(samples, "pull", peer)
            lines.append(Row(name, here, f"`{peer}`: {note}", goal=goal))
            continue
        ratio = there_s / wall_s
        cell = f"`{peer}` {there_s:.2f} s (CPU {there_cpu:.2f})"
        lines.append(Row(name, here, cell, f"{ratio:.1f} x", goal, ratio >= FASTER))
    return lines
