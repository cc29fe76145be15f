"""What a long build tells while it runs."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(slots=True)
class Progress:
    """Counts the steps of a build and reports each."""

    report: Callable[[str, int, int], None] = lambda label, done, total: None
    total: int = 0
    done: int = 0
    started_s: float = field(default_factory=time.monotonic)

    def step(self, label: str) -> None:
        """Report that one step is done."""
        self.done += 1
        self.report(label, self.done, max(self.total, self.done))

    @property
    def elapsed_s(self) -> float:
        """Seconds since the build began."""
        return time.monotonic() - self.started_s


def peak_memory_bytes() -> int:
    """Return the most memory this process ever had resident."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts KiB. macOS counts bytes (getrusage(2) of macOS); not run.
    return peak if sys.platform == "darwin" else peak * 1024
