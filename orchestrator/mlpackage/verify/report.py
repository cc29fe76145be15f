"""The result of a verification."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MutationResult:
    """One deliberate mistake: whether the measures noticed it, and by what."""

    name: str
    noticed: bool
    how: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a package computes against what it must compute. Errors are in the output's own unit."""

    model: str  # the recipe's name
    packages: tuple[str, ...]
    roles: tuple[str, ...]
    positions: int  # outputs that were compared
    output_spread: float  # standard deviation of the right output
    max_error: float
    error_limit: float
    top1_equal: float  # shares, 0 to 1
    top1_in_top3: float
    top5_overlap: float
    rows_written: int
    stray_rows: int
    weights_compared: int
    compressed: bool  # after the build: weights may differ, outputs are judged by the package's own
    mutations: tuple[MutationResult, ...]
    findings: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


@dataclass(frozen=True, slots=True)
class WitnessReport:
    """Whether a witness package proves contexts."""

    packages: tuple[str, ...]
    roles: tuple[str, ...]
    contexts: int
    proven: int
    mutations: tuple[MutationResult, ...]
    findings: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings
