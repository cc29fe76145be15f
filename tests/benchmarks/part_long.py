"""7. Long runs through runlog, verdict and report. Size: hours, of four phones each.

There is no `telemetry.ndjson`: `fleet report` merges stream and journal on its way, judges, draws
and writes every report, in one process whose peak memory is the system's own figure.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.benchmarks.long_runs import PHONES, write_long_run
from tests.benchmarks.processes import FLEET, run
from tests.benchmarks.samples import Row, Sample, best, exponent, of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.scale import Scale

NAME: Final = "long"
LINEAR: Final = 1.1  # exponent of time
FLAT: Final = 1.2  # memory of the longest run against the shortest
GROWTH: Final = (
    ("report", "cpu_s", "CPU seconds by hours"),
    ("report", "peak_mib", "peak MiB by hours"),
)


def measure(scale: Scale) -> list[Sample]:
    """Write and report a run of each length."""
    samples = []
    for hours in scale.hours:
        with tempfile.TemporaryDirectory(prefix="bench-long-") as name:
            size = write_long_run(Path(name), hours)
            taken = run(["sh", "-c", f"{FLEET} report {name} || test $? = 1"], limit_s=3600)
        samples.append(Sample(NAME, "report", "ours", hours, {**taken, "bytes_per_phone": size}))
    return samples


def rows(samples: Sequence[Sample]) -> list[Row]:
    """Return the lines of the table."""
    taken = of(samples, "report")
    hours = max((one.size for one in taken), default=0)
    least = min((one.size for one in taken), default=0)
    longest, shortest = of(taken, "report", size=hours), of(taken, "report", size=least)
    cpu_s, peak_mib = best(longest, "cpu_s"), best(longest, "peak_mib")
    base_mib, size = best(shortest, "peak_mib"), best(longest, "bytes_per_phone")
    fitted = exponent((one.size, one.values["cpu_s"]) for one in taken)
    if cpu_s is None or peak_mib is None or base_mib is None or size is None:
        return []
    name = f"report of {hours:g} h x {PHONES} phones ({size / 1e6:.0f} MB each)"
    grown = peak_mib / base_mib
    growth = f"{grown:.2f} x of {least:g} h"
    return [
        Row(
            f"{name}, CPU time",
            f"{cpu_s:.1f} s",
            ratio="" if fitted is None else f"hours^{fitted:.2f}",
            goal=f"exponent <= {LINEAR:g}",
            met=None if fitted is None else fitted <= LINEAR,
        ),
        Row(f"{name}, peak", f"{peak_mib:.0f} MiB", "", growth, f"<= {FLAT:g} x", grown <= FLAT),
    ]
