"""What several hosts cost: `python -m tests.benchmarks.cluster --agents 1,3,6 --phones 16`.

All members run on this machine, over loopback, with the stand-in app; processor time and peak
memory are read from /proc (Linux), so that a busy machine changes little. With `--plain` the same
phones of one host are soaked without a cluster too: the difference is what the cluster costs.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks.farm import Figure
from tests.benchmarks.processes import cpu_s
from tests.cluster.members import Cluster, cluster
from tests.end_to_end.fleet_process import QUICK, WITHOUT_SWIFT, FinishedRun, finish, start_fleet

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

RUN_LIMIT_S = 1800.0
SAMPLE_S = 0.25


@dataclass(slots=True)
class Watched:
    """Processor time and peak memory of processes, the last that was seen of each."""

    cpu: dict[str, float] = field(default_factory=dict)
    peak_mib: dict[str, float] = field(default_factory=dict)

    def look(self, name: str, pid: int) -> None:
        try:
            self.cpu[name] = cpu_s(pid)
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return  # it ended; what was seen last stands
        peak = re.search(r"VmHWM:\s+(\d+) kB", status)
        if peak:
            self.peak_mib[name] = int(peak[1]) / 1024


def watched_run(
    process: subprocess.Popen[str], output: Path, others: Callable[[], dict[str, int]]
) -> tuple[FinishedRun, Watched]:
    """Wait for a run, and watch it and its fellows."""
    watched, over = Watched(), threading.Event()

    def watch() -> None:
        while not over.wait(SAMPLE_S):
            for name, pid in {"soak": process.pid, **others()}.items():
                watched.look(name, pid)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        run = finish(process, output, limit_s=RUN_LIMIT_S)
    finally:
        over.set()
        watcher.join()
    assert run.exit_code in (0, 1, 4), run.stderr  # a busy host may fail a check of time
    return run, watched


def members_of(made: Cluster) -> dict[str, int]:
    """Pids of scheduler, agents, and what carries their slices out."""
    found = {}
    for name, member in {"scheduler": made.scheduler, **made.agents}.items():
        if member.process is not None:
            found[name] = member.process.pid
    for name in made.agents:
        try:
            found[f"{name} soak"] = made.child_of(name)
        except (ValueError, OSError):
            continue  # not begun
    return found


def of_cluster(folder: Path, agents: int, phones: int) -> list[Figure]:
    """Return the figures of one size."""
    folder.mkdir()
    with cluster(folder, hosts=agents, phones=phones) as made:
        before = {name: cpu_s(pid) for name, pid in members_of(made).items()}
        began_s = time.perf_counter()
        run, watched = watched_run(made.start(*QUICK), made.output, lambda: members_of(made))
        wall_s = time.perf_counter() - began_s
    count = agents * phones
    spent = {name: cpu - before.get(name, 0.0) for name, cpu in watched.cpu.items()}
    received = sum(fact["received_bytes"] for fact in _facts(run, "mirrored"))
    size = f"{agents} x {phones}"
    on_hosts = sum(cpu for name, cpu in spent.items() if name not in ("scheduler", "soak"))
    return [
        Figure(f"{size}: scheduler, processor", spent["scheduler"], "s"),
        Figure(f"{size}: scheduler, peak memory", watched.peak_mib["scheduler"], "MiB"),
        Figure(f"{size}: coordinator with report, processor", spent["soak"], "s"),
        Figure(f"{size}: coordinator, peak memory", watched.peak_mib["soak"], "MiB"),
        Figure(f"{size}: agents and their soaks, per phone", on_hosts / count, "s"),
        Figure(f"{size}: mirrored, per phone", received / count / 1024, "KiB"),
        Figure(f"{size}: all processor time, per phone", sum(spent.values()) / count, "s"),
        Figure(f"{size}: from start to report", wall_s, "s"),
    ]


def of_one_host(folder: Path, phones: int) -> list[Figure]:
    """Return the figures of the plain path, on served phones."""
    from tests.end_to_end.fleet_process import served_phones

    folder.mkdir()
    with served_phones(folder, "--phones", str(phones), "--seed", "1") as farm:
        process = start_fleet(
            folder,
            *("soak", *QUICK, "--output", str(folder / "runs")),
            PATH=WITHOUT_SWIFT,
            USBMUXD_SOCKET_ADDRESS=farm["usbmux"],
        )
        _, watched = watched_run(process, folder / "runs", dict)
    return [
        Figure(f"plain {phones}: processor, per phone", watched.cpu["soak"] / phones, "s"),
        Figure(f"plain {phones}: peak memory", watched.peak_mib["soak"], "MiB"),
    ]


def _facts(run: FinishedRun, kind: str) -> list[dict[str, int]]:
    return [event["facts"] for event in run.events(kind)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.cluster", description=__doc__)
    parser.add_argument("--agents", default="1,3,6")
    parser.add_argument("--phones", type=int, default=16)
    parser.add_argument("--plain", action="store_true")
    parsed = parser.parse_args()
    print(f"{os.cpu_count()} cores, {sys.platform}, load {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        if parsed.plain:
            for figure in of_one_host(Path(name) / "plain", parsed.phones):
                print(figure.line(), flush=True)
        for agents in map(int, parsed.agents.split(",")):
            for figure in of_cluster(Path(name) / str(agents), agents, parsed.phones):
                print(figure.line(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
