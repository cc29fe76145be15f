"""1. What a person waits for before anything happens. Size: none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from tests.benchmarks.processes import FLEET, PEER, run
from tests.benchmarks.samples import OURS, Row, Sample, best, of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.scale import Scale

NAME: Final = "startup"
LIMIT_S: Final = 0.150
FASTER: Final = 5.0
LIBRARY: Final = "pymobiledevice3 --help"
GROWTH: Final = ()


def measure(scale: Scale) -> list[Sample]:
    """Start each command in turn, so that what else the machine does falls on all."""
    commands = {
        ("help", OURS): [FLEET, "--help"],
        ("version", OURS): [FLEET, "--version"],
        ("help", LIBRARY): [PEER, "--help"],
    }
    os.environ["COLUMNS"] = "80"
    return [
        Sample(NAME, what, subject, 1, run(words))
        for _ in range(scale.rounds)
        for (what, subject), words in commands.items()
    ]


def rows(samples: Sequence[Sample]) -> list[Row]:
    """Return the lines of the table."""
    there = best(of(samples, "help", LIBRARY), "cpu_s")
    there_s = best(of(samples, "help", LIBRARY), "wall_s")
    lines = []
    for what in ("help", "version"):
        wall_s, cpu_s = (best(of(samples, what), key) for key in ("wall_s", "cpu_s"))
        if wall_s is None or cpu_s is None or there is None or there_s is None:
            continue
        ours = f"{1000 * wall_s:.0f} ms (CPU {1000 * cpu_s:.0f})"
        goal = f"< {1000 * LIMIT_S:.0f} ms"
        lines.append(Row(f"`fleet --{what}`", ours, goal=goal, met=wall_s < LIMIT_S))
        if what == "help":
            peer = f"`{LIBRARY}` {1000 * there_s:.0f} ms (CPU {1000 * there:.0f})"
            ratio = min(there_s / wall_s, there / cpu_s)
            goal = f">= {FASTER:g} x faster"
            met = ratio >= FASTER
            lines.append(Row("`fleet --help`", ours, peer, f"{ratio:.1f} x", goal, met))
    return lines
