"""What the host itself had to do while a run went on: too slow a host is not a slow phone."""

from __future__ import annotations

import os
import resource
import sys
from typing import Final

PERIOD_S: Final = 60.0
_KIB: Final = 1024


def host_load() -> dict[str, float]:
    """Return load and memory of the host and of this process."""
    load_1m, _, load_15m = os.getloadavg()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    # Linux counts in KiB, a Mac in bytes (getrusage(2); not run on a Mac).
    unit = 1 if sys.platform == "darwin" else _KIB
    facts = {
        "load_1m": round(load_1m, 2),
        "load_15m": round(load_15m, 2),
        "cpu_count": float(os.cpu_count() or 0),
        "own_peak_bytes": float(usage.ru_maxrss * unit),
        "own_cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
    }
    free_bytes = _available_bytes()
    return facts if free_bytes is None else {**facts, "available_bytes": float(free_bytes)}


def _available_bytes() -> int | None:
    """Return what could be had without swapping; None where the system does not say it so."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * _KIB
    except OSError:
        return None
    return None
