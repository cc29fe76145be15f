"""What runs are compared by: one number per phone and run, never samples within a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of a phone's soak."""

    name: str  # relied on from outside: `regression:` of fleet.yaml uses it
    unit: str
    worse: Literal["lower", "higher"]
    max_loss_percent: float  # what a regression gate lets pass unless it is told otherwise


MEASURES: Final = (
    Measure("tokens_per_s", "tokens/s", "lower", 5.0),
    Measure("footprint_peak_bytes", "bytes", "higher", 5.0),  # ballast taken off
    Measure("load_ms", "ms", "higher", 20.0),
)

MEASURE_NAMES: Final = tuple(measure.name for measure in MEASURES)
