"""3a. Reading full-size reports. Size: processes, or images, of a report."""

from __future__ import annotations

import importlib
import io
import json
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from orchestrator.evidence.listing import Interest, row_of
from orchestrator.evidence.parse import parse_reports
from tests.benchmarks.full_reports import full_crash, full_jetsam
from tests.benchmarks.samples import OURS, Row, Sample, best, of
from tests.evidence.factory import APP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.benchmarks.scale import Scale

NAME: Final = "evidence"
FLOOR: Final = "json.loads"
LIBRARY: Final = "pycrashreport"
GROWTH: Final = (("jetsam", "cpu_s", "CPU seconds by processes"),)
_REPEATS: Final = 20


def measure(scale: Scale) -> list[Sample]:
    """Read each report with each reader in turn."""
    samples: list[Sample] = []
    for _ in range(scale.rounds):
        for count in scale.processes:
            for what, content in (("jetsam", full_jetsam(count)), ("crash", full_crash(count))):
                readers = {OURS: _here, FLOOR: _floor, LIBRARY: _there}
                samples += [
                    Sample(NAME, what, name, count, _cost(partial(read, content), len(content)))
                    for name, read in readers.items()
                ]
    return samples


def _cost(read: Callable[[], object], size_bytes: int) -> dict[str, float]:
    began_s, began_wall_s = time.process_time(), time.perf_counter()
    for _ in range(_REPEATS):
        read()
    return {
        "cpu_s": (time.process_time() - began_s) / _REPEATS,
        "wall_s": (time.perf_counter() - began_wall_s) / _REPEATS,
        "bytes": size_bytes,
    }


def _here(content: bytes) -> object:
    """Read everything that `fleet crashlog parse` prints: victims, footprints, times."""
    return [row_of(parsed, Interest(APP)) for parsed in parse_reports(content, "r")]


def _floor(content: bytes) -> object:
    head, _, body = content.partition(b"\n")
    return json.loads(head), json.loads(body)


def _there(content: bytes) -> object:
    """Read type, time and process; its constructor reads the body of every type."""
    library = importlib.import_module("pycrashreport.crash_report")
    raw = io.BytesIO(content)
    raw.name = "report.ips"  # the library asks files for it
    report = library.get_crash_report_from_file(io.TextIOWrapper(raw, encoding="utf-8"))
    assert isinstance(report._data, dict)
    return report.bug_type, report.timestamp, report.name


def rows(samples: Sequence[Sample]) -> list[Row]:
    """Return the lines of the table, for the largest reports."""
    lines = []
    count = max((one.size for one in samples), default=0)
    for what in ("jetsam", "crash"):
        ours = best(of(samples, what, size=count), "cpu_s")
        size = best(of(samples, what, size=count), "bytes") or 0
        for peer, faster in ((FLOOR, 1.0), (LIBRARY, 2.0)):
            theirs = best(of(samples, what, peer, count), "cpu_s")
            if not ours or not theirs:
                continue
            name, ratio = f"{what} report of {size / 1000:.0f} kB", theirs / ours
            here, there = f"{1 / ours:,.0f}/s", f"`{peer}` {1 / theirs:,.0f}/s"
            goal = f">= {faster:g} x"
            lines.append(Row(name, here, there, f"{ratio:.1f} x", goal, ratio >= faster))
    return lines
