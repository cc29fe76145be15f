"""2. Who is attached. Size: phones."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

from tests.benchmarks.processes import FLEET, PEER, farm_of, found, run
from tests.benchmarks.samples import OURS, Row, Sample, best, of, why_missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.scale import Scale

NAME: Final = "discovery"
LIMIT_S: Final = 1.0
FASTER: Final = 2.5
LIBRARY: Final = "pymobiledevice3 usbmux list"
TOOLS: Final = "idevice_id -l, ideviceinfo each"
GROWTH: Final = (("list", "cpu_s", "CPU seconds by phones"),)


def measure(scale: Scale) -> list[Sample]:
    """List farms of each size with each tool in turn."""
    samples: list[Sample] = []
    for count in scale.listed_phones:
        with farm_of(count) as (_, _, udids):
            run([PEER, "usbmux", "list"])  # the phones make keys when they are first asked
            for _ in range(scale.rounds):
                samples += [
                    Sample(NAME, "list", OURS, count, run([FLEET, "devices"])),
                    Sample(NAME, "list", LIBRARY, count, run([PEER, "usbmux", "list"])),
                    _with_tools(count, udids),
                ]
    return samples


def _with_tools(count: int, udids: Sequence[str]) -> Sample:
    if found("idevice_id") is None or found("ideviceinfo") is None:
        return Sample(NAME, "list", TOOLS, count, note="not installed")
    each = " && ".join(f"ideviceinfo -s -u {udid}" for udid in udids)
    try:
        return Sample(NAME, "list", TOOLS, count, run(["sh", "-c", f"idevice_id -l && {each}"]))
    except subprocess.CalledProcessError as error:
        words = error.stderr.decode(errors="replace").strip() or f"exit {error.returncode}"
        return Sample(NAME, "list", TOOLS, count, note=words[:100])


def rows(samples: Sequence[Sample]) -> list[Row]:
    """Return the lines of the table, for the most phones."""
    count = max((one.size for one in samples), default=0)
    ours = of(samples, "list", size=count)
    wall_s, cpu_s = best(ours, "wall_s"), best(ours, "cpu_s")
    if wall_s is None or cpu_s is None:
        return []
    name, here = f"`fleet devices`, {count:g} phones", f"{wall_s:.2f} s (CPU {cpu_s:.2f})"
    lines = [Row(name, here, goal=f"< {LIMIT_S:g} s", met=wall_s < LIMIT_S)]
    for peer, goal in ((LIBRARY, f">= {FASTER:g} x faster"), (TOOLS, "")):
        theirs = of(samples, "list", peer, count)
        there_s, there_cpu = best(theirs, "wall_s"), best(theirs, "cpu_s")
        if there_s is None or there_cpu is None:
            lines.append(Row(name, here, f"`{peer}`: {why_missing(samples, 'list', peer)}"))
            continue
        ratio = there_s / wall_s
        cell = f"`{peer}` {there_s:.2f} s (CPU {there_cpu:.2f})"
        met = ratio >= FASTER if goal else None
        lines.append(Row(name, here, cell, f"{ratio:.1f} x", goal, met))
    return lines
