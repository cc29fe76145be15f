"""Runs a plan of predictions and measures what differs from the truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.mlpackage.build.chunks import DECODE, PREFILL
from orchestrator.mlpackage.verify.feeds import Step, feed_for, padded
from orchestrator.mlpackage.verify.subject import copied, stale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.mlpackage.verify.feeds import Feed
    from orchestrator.mlpackage.verify.subject import ChainState, Subject
    from orchestrator.mlpackage.verify.tensors import Array
    from orchestrator.mlpackage.verify.truth import Truth

# Largest error in units of the spread. Storing fp16 after every operation gives 0.7 to 1.1 % on
# the presets; the smallest mutation, one stale row in sight, gives 10 % and more.
ERROR_LIMIT: Final = 0.03
_LARGE_PARAMETERS: Final = 100_000_000
_STALE_SEED: Final = 11


@dataclass(slots=True)
class Measured:
    """Differences of one or several predictions from the truth."""

    errors: list[float] = field(default_factory=list)  # largest per position, in its own unit
    row_error: float = 0.0  # largest of keys and values, in units of their spread
    top1_equal: int = 0
    top1_in_top3: int = 0
    top5_overlap: float = 0.0
    rows_written: int = 0
    stray_rows: int = 0  # changed outside of the rows that had to be written
    not_finite: int = 0

    @property
    def max_error(self) -> float:
        """The largest error of an output."""
        return max(self.errors, default=0.0)

    @property
    def positions(self) -> int:
        """Positions whose output was compared."""
        return len(self.errors)


def plan_for(subject: Subject) -> list[Step]:
    """Return predictions with full, padded and single-token chunks, as far as the roles go."""
    recipe, large = subject.recipe, subject.recipe.parameters > _LARGE_PARAMETERS
    width = recipe.chunk
    if subject.roles == (DECODE,):
        counts, decodes = [], 4 if large else 24
    elif subject.roles == (PREFILL,):
        counts, decodes = [-(-9 * width // 16), width] + ([] if large else [-(-width // 5)]), 0
    else:
        counts, decodes = [width, -(-9 * width // 16)], 2 if large else 12
    steps: list[Step] = []
    start = 0
    for count in counts:
        if start + width <= recipe.length:
            steps.append(Step(PREFILL, start, count, width))
            start += count
    decodes = min(decodes, recipe.length - start)
    return steps + [Step(DECODE, start + index, 1, 1) for index in range(decodes)]


def run_plan(subject: Subject, steps: Sequence[Step], truth: Truth) -> tuple[Measured, ChainState]:
    """Run all steps from a recycled state.

    Returns:
        What was measured, and the state as it was before the last step.
    """
    state = stale(subject.make_state(), _STALE_SEED)
    measured, before = Measured(), state
    for step in steps:
        before = copied(state)
        feed = right_feed(subject, step, truth)
        measure_step(subject, step, feed, truth, state, measured)
    return measured, before


def right_feed(subject: Subject, step: Step, truth: Truth) -> Feed:
    """Return the inputs that a step must have."""
    first = padded(truth.first[step.start : step.start + step.count], step.width)
    return feed_for(step, first, subject.recipe.length, subject.layout)


def measure_step(
    subject: Subject,
    step: Step,
    feed: Feed,
    truth: Truth,
    state: ChainState,
    measured: Measured,
) -> None:
    """Run one prediction, whatever it is fed, and add its differences from the truth."""
    before = copied(state)
    output = subject.predict(step.role, feed, state)[0].astype(np.float32)
    last = step.start + step.count
    # One row of logits, that of the last token; of hidden values a row per token and padding.
    wanted = truth.last[last - 1 if len(output) == 1 else step.start : last]
    for row, right in zip(output[: len(wanted)], wanted, strict=True):
        _compare(row, right, measured)
    for layer in subject.layers:
        for old, new, rows in zip(
            subject.rows(before, layer),
            subject.rows(state, layer),
            (truth.keys[layer], truth.values[layer]),
            strict=True,
        ):
            _compare_rows(step, old, new, rows, measured)
    measured.rows_written += step.count


def _compare(row: Array, right: Array, measured: Measured) -> None:
    if not np.isfinite(row).all():
        measured.not_finite += 1
        measured.errors.append(float("inf"))
        return
    measured.errors.append(float(np.abs(row - right).max()))
    best, wanted = np.argsort(-row)[:5], np.argsort(-right)[:5]
    measured.top1_equal += int(best[0] == wanted[0])
    measured.top1_in_top3 += int(wanted[0] in best[:3])
    measured.top5_overlap += len(set(best.tolist()) & set(wanted.tolist())) / 5


def _compare_rows(step: Step, old: Array, new: Array, rows: Array, measured: Measured) -> None:
    """Compare the written rows with the truth, and all others with what they were."""
    span = slice(step.start, step.start + step.count)
    error = np.abs(new[:, span].astype(np.float32) - rows[:, span]).max()
    spread = float(rows.std())
    measured.row_error = max(measured.row_error, float(np.nan_to_num(error, nan=np.inf)) / spread)
    changed = (old.view(np.uint16) != new.view(np.uint16)).any(axis=(0, 2))
    changed[step.start : step.start + step.width] = False
    measured.stray_rows += int(changed.sum())
