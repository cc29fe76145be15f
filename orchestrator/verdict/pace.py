"""How long each decode step took, as its consumer felt it; shared by the checks of speed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.runlog.telemetry import (
    Breadcrumb,
    Heartbeat,
    Hello,
    MemoryWarning,
    Sample,
    Tokens,
)

if TYPE_CHECKING:
    from orchestrator.runlog.telemetry import AnyRecord

NOMINAL: Final = "nominal"


@dataclass(frozen=True, slots=True)
class Step:
    """One decode step: from the end of the sample before it to its own end."""

    latency_ns: int
    end_ns: int  # since the launch
    rows: int  # of the state at the sample
    ordinal: int  # of the sample in the launch, from 1


class Pace:
    """The decode steps of the latest record, and the thermal state they ran in.

    Only neighbours count: between two samples with a prefill, a cut or another turn between them
    lies more than a decode step.

    Attributes:
        steps: Steps of the latest record.
        thermal: The phone's thermal state as the latest sample of the device says it.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.thermal = NOMINAL
        self._last_end_ns: int | None = None  # of a sample that the next one may follow
        self._ordinal = 0

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        self.steps = []
        match record:
            case Hello():
                self.thermal, self._last_end_ns, self._ordinal = NOMINAL, None, 0
            case Tokens():
                self._on_tokens(record)
            case Sample():
                self.thermal = record.thermal
            case MemoryWarning() | Heartbeat() | Breadcrumb():
                pass  # written by other threads, or before an act that has a record of its own
            case _:
                self._last_end_ns = None

    def _on_tokens(self, record: Tokens) -> None:
        for end_ns, rows in zip(record.end_ns, record.n, strict=False):
            self._ordinal += 1
            last_ns, self._last_end_ns = self._last_end_ns, end_ns
            if last_ns is not None and end_ns > last_ns:
                self.steps.append(Step(end_ns - last_ns, end_ns, rows, self._ordinal))
