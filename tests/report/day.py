"""A day of ten phones at 1 Hz: writes the run, remakes its page, prints what that took.

`python -m tests.report.day` measures the drawing alone, from full series; with `--telemetry` the
whole of `fleet report`, from 864,000 samples on disk.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from orchestrator.report.page import html_page
from orchestrator.report.remake import remake
from orchestrator.report.timeline import timeline_of
from orchestrator.runlog.files import replace_file, write_document
from orchestrator.runlog.layout import RunPaths
from orchestrator.verdict.series import MAX_BUCKETS, Bucket, Mark, Series, ThermalSpan
from tests.report.results import check, phone, run, verdict
from tests.report.runs import EVIDENCE, PLAN, SPEC, run_document
from tests.verdict.host_side import device_of, planned_phone
from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import BOOT_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.report.result import RunResult

PHONES, DAY_S = 10, 86_400
SPIKE = 4_000 * 1024**2
STATES = ("nominal", "fair", "serious", "critical")


def full_series() -> Series:
    """Return a series that has as many buckets, marks and thermal spans as one can have."""
    span_s = DAY_S / MAX_BUCKETS

    def wave(level: float, swing: float) -> tuple[Bucket, ...]:
        return tuple(
            Bucket(n * span_s, level + swing * math.sin(n * 0.7), level + swing * 1.5)
            for n in range(MAX_BUCKETS)
        )

    kinds = ("trim", "trim_missing", "trim_unexpected", "evict", "memory_warning")
    return Series(
        span_s=span_s,
        end_s=DAY_S,
        footprint_bytes=wave(2e9, 4e8),
        own_bytes=wave(1.5e9, 2e8),
        peak_bytes=wave(2.6e9, 1e6),
        rows=wave(1200, 600),
        tokens_per_s=wave(20, 5),
        battery_percent=wave(60, 20),
        marks=tuple(Mark(n * span_s, kind, 3) for n in range(MAX_BUCKETS) for kind in kinds),
        thermal=tuple(ThermalSpan(n * DAY_S / 500, STATES[n % 4]) for n in range(500)),
        thermal_left_out=0,
    )


def drawn_day() -> RunResult:
    """Return a judged run of ten phones with full series."""
    timeline = timeline_of(
        full_series(), limit_bytes=3 * 10**9, headroom_percent=20, budget_tokens=2048, died=False
    )
    checks = [check(check_id) for check_id in ("memory.peak", "trim.on-schedule")] * 16
    return run(
        *(phone(verdict(*checks, alias=f"desk-{n}"), timeline=timeline) for n in range(PHONES))
    )


def sample_lines() -> Iterator[bytes]:
    """Yield a day of samples, one of which spikes, after a launch's first records."""
    app = App(SPEC)
    app.begin()
    rows = app.records
    fields = {**app.sample_fields(), "launch": rows[0]["launch"], "kind": "sample"}
    for row in rows:
        yield json.dumps(row).encode() + b"\n"
    for second in range(DAY_S):
        footprint = SPIKE if second == DAY_S // 3 else 10**9 + second % 97
        row = {
            **fields,
            "seq": len(rows) + second + 1,
            "t_ns": (second + 1) * 10**9,
            "footprint": footprint,
            "tokens_total": second * 20,
            "battery_percent": 100 - second / DAY_S * 50,
        }
        yield json.dumps(row).encode() + b"\n"


def write_day(root: Path) -> None:
    """Write the run directory."""
    paths = RunPaths(root)
    planned = [
        structs.replace(
            planned_phone(SPEC), alias=f"desk-{n}", udid=f"udid-{n}", directory=f"d-{n}"
        )
        for n in range(PHONES)
    ]
    document = structs.replace(run_document(), ended_s=BOOT_S + DAY_S)
    write_document(paths.run, document)
    write_document(paths.plan, structs.replace(PLAN, phones=planned))
    content = b"".join(sample_lines())
    for each in planned:
        device = paths.device(each.directory)
        write_document(device.device, device_of(udid=each.udid, alias=each.alias))
        write_document(device.attempt(1).evidence, EVIDENCE)
        replace_file(device.telemetry, content)


def measured(*, telemetry: bool) -> dict[str, float]:
    """Return what a page took: seconds, MB of memory at most, MB of the file."""
    if telemetry:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "run"
            write_day(root)
            began_s = time.process_time()
            remake(root)
            took_s = time.process_time() - began_s
            size = RunPaths(root).html.stat().st_size
    else:
        result = drawn_day()
        began_s = time.process_time()
        size = len(html_page(result).encode())
        took_s = time.process_time() - began_s
    return {
        "seconds": round(took_s, 1),
        "memory_mb": peak_bytes() // 10**6,
        "file_mb": size / 10**6,
    }


def peak_bytes() -> int:
    """Return this process's own peak; on Linux `ru_maxrss` keeps that of whoever started it."""
    status = Path("/proc/self/status")
    if status.exists():
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS; not run


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--telemetry", action="store_true")
    print(json.dumps(measured(telemetry=parser.parse_args().telemetry)))
