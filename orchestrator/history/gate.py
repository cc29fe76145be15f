"""The regression gate of a run that has just ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from orchestrator.history.comparison import Comparison, compare
from orchestrator.history.resolution import resolve

if TYPE_CHECKING:
    from orchestrator.config.model import RegressionBlock
    from orchestrator.history.entry import RunEntry
    from orchestrator.history.store import History


class GateResult(StrEnum):
    """What the gate says."""

    HELD = "held"
    REGRESSED = "regressed"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class GateRuling:
    """The gate's answer and what it rests on."""

    baseline: str
    result: GateResult
    comparison: Comparison


def rule(block: RegressionBlock, history: History, run: RunEntry) -> GateRuling | None:
    """Return how a run stands against the baseline, None where no gate is configured.

    Raises:
        UsageError: If nothing has the baseline's name.
        HistoryError: If the history cannot be read.
    """
    if block.baseline is None:
        return None
    comparison = compare(
        [run],
        [entry for entry in resolve(history, block.baseline) if entry.run_id != run.run_id],
        history.runs(),
        max_loss_percent=block.max_loss_percent,
    )
    return GateRuling(block.baseline, _result(comparison), comparison)


def _result(comparison: Comparison) -> GateResult:
    if comparison.worse:
        return GateResult.REGRESSED
    return GateResult.HELD if comparison.conclusive else GateResult.INCONCLUSIVE
