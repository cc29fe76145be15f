"""4 and 5. What a soak costs the host, and what its telemetry costs a phone. Size: phones.

Served phones on the tunneld road, witness engine at 30 tokens/s, 5 samples/s, `memory_scale` 128.
The orchestrator is watched from outside while all phones decode: processor time, private memory,
and how old the newest record of each phone is. Keepers are counted apart. A soak of some seconds
cannot show what its scenario demands, so its exit code is not looked at; part `hundred` does that.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.benchmarks.keepers import memory_of
from tests.benchmarks.processes import FLEET, cpu_s, farm_of
from tests.benchmarks.samples import Row, Sample, middle, of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.benchmarks.scale import Scale

NAME: Final = "soak"
MEMORY_SCALE: Final = 128
SAMPLES_PER_S: Final = 5
CPU_PERCENT: Final = 1.0  # of a core, per phone
PRIVATE_MIB: Final = 3.0  # per phone, in the orchestrator
KEEPER_MIB: Final = 6.0
LATE_S: Final = 1.25  # one second, and the quarter for which an app gathers tokens
FLASH_KB_S: Final = 5.0
GROWTH: Final = (
    ("soak", "cpu_percent_per_phone", "% of a core and phone by phones"),
    ("soak", "private_mib", "MiB of the orchestrator by phones"),
)
_START_LIMIT_S: Final = 600.0
_END_LIMIT_S: Final = 900.0
_SETTINGS: Final = (
    "workload.decode_tokens_per_s=30",
    "workload.sample_period_ms=200",
    "evidence.report_wait_s=5",
)


@dataclass(slots=True)
class Watched:
    """What was seen of a soak."""

    values: dict[str, float] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)


def measure(scale: Scale) -> list[Sample]:
    """Soak farms of each size."""
    return [
        Sample(NAME, "soak", "ours", count, soaked(count, scale.soak_s).values)
        for count in scale.soaked_phones
    ]


def soaked(count: int, seconds: float) -> Watched:
    """Soak so many phones for so long and watch.

    Raises:
        RuntimeError: If not all apps are launched in time.
    """
    watched = Watched()
    with (
        farm_of(count, "--memory-scale", str(MEMORY_SCALE)) as (_, farm, _),
        tempfile.TemporaryDirectory() as out,
    ):
        config = Path(out) / "fleet.yaml"
        road = f'{{name: farm, usbmux: "{farm["usbmux"]}", tunneld: "{farm["tunneld"]}"}}'
        config.write_text(f"schema: 1\nsources:\n  - {road}\n")
        words = [FLEET, "soak", "--config", str(config), "--output", out]
        words += ["--duration", f"{seconds:g}s"]
        words += [word for setting in _SETTINGS for word in ("--set", setting)]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        with subprocess.Popen(words, stderr=subprocess.DEVNULL, **quiet) as process:  # type: ignore[call-overload]
            try:
                run = _launched(process, Path(out), count)
                _watch(process.pid, run, count, seconds * 0.7, watched.values)
                process.wait(_END_LIMIT_S)
            finally:
                process.terminate()
        watched.summary = json.loads((run / "summary.json").read_bytes())
        _add_results(run, watched)
    return watched


def _launched(process: subprocess.Popen[bytes], out: Path, count: int) -> Path:
    until_s = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < until_s and process.poll() is None:
        streams = list(out.glob("2*/devices/*/attempts/*/launches/*/stream.ndjson"))
        if sum(b'"turn_start"' in path.read_bytes()[:20_000] for path in streams) == count:
            return next(out.glob("2*"))
        time.sleep(0.2)
    raise RuntimeError(f"not all of {count} apps came up")


def _watch(pid: int, run: Path, count: int, seconds: float, values: dict[str, float]) -> None:
    began_s, began_cpu_s, late_s = time.monotonic(), cpu_s(pid), 0.0
    streams = list(run.glob("devices/*/attempts/*/launches/*/stream.ndjson"))
    clocks = {path: _clock(path) for path in streams}
    while (passed_s := time.monotonic() - began_s) < seconds:
        late_s = max(late_s, *(_age_s(path, clocks[path]) for path in streams))
        time.sleep(1.0)
    used_s = cpu_s(pid) - began_cpu_s
    keepers = [memory_of(child)[0] for child in _below(pid) if _is(child, "keeper")]
    values |= {
        "cpu_percent_per_phone": 100 * used_s / passed_s / count,
        "private_mib": memory_of(pid)[0],
        "late_s": late_s,
        "load_1min": os.getloadavg()[0],
    }
    if keepers:
        values["keeper_private_mib"] = sum(keepers) / len(keepers)


def _clock(stream: Path) -> tuple[float, int]:
    with stream.open("rb") as file:
        hello = json.loads(file.readline())
    return float(hello["wall_time_s"]), int(hello["t_ns"])


def _age_s(stream: Path, clock: tuple[float, int]) -> float:
    """Return how old the newest whole record is, by the clock that the app stated."""
    with stream.open("rb") as file:
        file.seek(max(0, stream.stat().st_size - 65536))
        lines = file.read().rpartition(b"\n")[0].splitlines()
    wall_s, t_ns = clock
    newest_ns = int(json.loads(lines[-1])["t_ns"])
    return time.time() - (wall_s + (newest_ns - t_ns) / 1e9)


def _processes() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def _below(pid: int) -> set[int]:
    parents: dict[int, int] = {}
    for one in _processes():
        try:
            stat = Path(f"/proc/{one}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents[one] = int(stat[1])
    found = {pid}
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def _is(pid: int, word: str) -> bool:
    try:
        return word in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


def _add_results(run: Path, watched: Watched) -> None:
    phones = watched.summary["phones"]
    complete = [
        check["result"] == "pass"
        for phone in phones
        for check in phone["checks"]
        if check["id"] == "telemetry.complete"
    ]
    journals = [
        _journal(path) for path in run.glob("devices/*/attempts/*/launches/*/journal.ndjson")
    ]
    watched.values |= {
        "complete": sum(complete),
        "passed": sum(phone["outcome"] == "PASS" for phone in phones),
        "flash_kb_s": max((one[0] for one in journals), default=0.0),
        "flash_samples_kb_s": max((one[1] for one in journals), default=0.0),
        "app_own_mib": max((one[2] for one in journals), default=0.0),
    }


def _journal(path: Path) -> tuple[float, float, float]:
    """Return kB/s of all records, kB/s of samples, and the most MiB that are the app's own.

    Own is what is neither KV state nor ballast nor weights, which stand in for a phone's.
    """
    lines = path.read_bytes().splitlines(keepends=True)
    records = [json.loads(line) for line in lines]
    span_s = max((records[-1]["t_ns"] - records[0]["t_ns"]) / 1e9, 0.1)
    samples = [n for n, record in enumerate(records) if record["kind"] == "sample"]
    own = [
        one["host_bytes"] - (one["kv"] + one["ballast"] + one["weights"]) / MEMORY_SCALE
        for one in (records[n] for n in samples)
    ]
    all_kb, samples_kb = sum(map(len, lines)) / 1000, sum(len(lines[n]) for n in samples) / 1000
    return all_kb / span_s, samples_kb / span_s, max(own, default=0.0) / 1024**2


def rows(samples: Sequence[Sample]) -> list[Row]:
    """Return the lines of the table, one set per number of phones."""
    lines: list[Row] = []
    if not samples:
        return lines
    counts = sorted({one.size for one in samples})
    for count in counts:
        lines += rows_of(of(samples, "soak", size=count), count)
    few, many = (
        middle(of(samples, "soak", size=n), "private_mib") for n in (counts[0], counts[-1])
    )
    if few is not None and many is not None and counts[-1] > counts[0]:
        each = (many - few) / (counts[-1] - counts[0])
        name = f"orchestrator, private memory per phone from {counts[0]:g} to {counts[-1]:g}"
        goal, met = f"<= {PRIVATE_MIB:g} MiB", each <= PRIVATE_MIB
        lines.append(Row(name, f"{each:.2f} MiB", goal=goal, met=met))
    return lines


_FIGURES: Final = (
    ("orchestrator, CPU per phone", "cpu_percent_per_phone", "% of a core", CPU_PERCENT),
    ("oldest newest record", "late_s", "s", LATE_S),
    ("a keeper, private memory", "keeper_private_mib", "MiB", KEEPER_MIB),
    ("journal of the app", "flash_kb_s", "kB/s", FLASH_KB_S),
    ("of that, 5 samples/s", "flash_samples_kb_s", "kB/s", None),
    ("the app without KV state, ballast and weights", "app_own_mib", "MiB", None),
)


def rows_of(taken: Sequence[Sample], count: float) -> list[Row]:
    """Return the lines of one number of phones."""
    lines = []
    for name, key, unit, limit in _FIGURES:
        value = middle(taken, key)
        goal = "" if limit is None else f"<= {limit:g} {unit}"
        if value is not None:
            met = None if limit is None else value <= limit
            lines.append(Row(f"{count:g} phones: {name}", f"{value:.2f} {unit}", "", "", goal, met))
    private, complete = middle(taken, "private_mib"), middle(taken, "complete")
    if private is not None:
        lines.append(Row(f"{count:g} phones: orchestrator, private", f"{private:.0f} MiB"))
    flash, of_samples = middle(taken, "flash_kb_s"), middle(taken, "flash_samples_kb_s")
    if flash is not None and of_samples is not None:
        usual = flash - of_samples * (1 - 1 / SAMPLES_PER_S)
        name, goal = f"{count:g} phones: journal, were it 1 sample/s", f"<= {FLASH_KB_S:g} kB/s"
        lines.append(Row(name, f"{usual:.2f} kB/s", goal=goal, met=usual <= FLASH_KB_S))
    if complete is not None:
        name = f"{count:g} phones: telemetry without a gap"
        lines.append(Row(name, f"{complete:g}", goal=f"{count:g}", met=complete == count))
    return lines
