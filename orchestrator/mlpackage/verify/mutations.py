"""Breaks the driver on purpose, one way at a time, and sees that the measures notice.

Tokens alone miss half of these: with a mask that shows one row too many the best token usually
stays the same. That is why logits and rows are compared, and why this is run on every package.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.mlpackage.build.chunks import PREFILL
from orchestrator.mlpackage.build.recipe import Layout
from orchestrator.mlpackage.verify.feeds import MASKED, causal_mask
from orchestrator.mlpackage.verify.measure import Measured, measure_step, right_feed
from orchestrator.mlpackage.verify.subject import copied, stale

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.mlpackage.verify.feeds import Feed, Step
    from orchestrator.mlpackage.verify.subject import ChainState, Subject
    from orchestrator.mlpackage.verify.tensors import Array
    from orchestrator.mlpackage.verify.truth import Truth

_SEED: Final = 13


@dataclass(frozen=True, slots=True)
class Mutation:
    """One deliberate mistake and what came of it."""

    name: str
    measured: Measured


@dataclass(frozen=True, slots=True)
class Bench:
    """Repeats one step of a plan with mistakes."""

    subject: Subject
    truth: Truth
    step: Step
    state: ChainState  # before the step

    def mutated(
        self, name: str, change: Callable[[Feed], Feed], *, poison: bool = False
    ) -> Mutation:
        """Run the step with changed inputs, or with a NaN in a row that must not be seen."""
        state = copied(self.state)
        if poison:
            _poison(self.subject, state, self.step)
        feed = change(right_feed(self.subject, self.step, self.truth))
        measured = Measured()
        measure_step(self.subject, self.step, feed, self.truth, state, measured)
        return Mutation(name, measured)


def run_mutations(
    subject: Subject, truth: Truth, steps: list[Step], before_last: ChainState
) -> list[Mutation]:
    """Return what every mutation did; each costs one prediction.

    Args:
        subject: The chain.
        truth: What it must compute.
        steps: The plan that was run.
        before_last: The state before the plan's last step.
    """
    step, recipe = steps[-1], subject.recipe
    bench = Bench(subject, truth, step, before_last)
    shifted = causal_mask(step, recipe.length, subject.layout, ahead=1)
    done = [bench.mutated("mask off by one", lambda feed: replace(feed, mask=shifted))]
    if step.start + step.width < recipe.length:  # there is a row behind what is written
        done += [
            bench.mutated(
                "position off by one", lambda feed: replace(feed, positions=feed.positions + 1)
            ),
            bench.mutated("NaN in a masked row", lambda feed: feed, poison=True),
        ]
    chunks = [step for step in steps if step.role == PREFILL and step.width > 1]
    if chunks:
        # Half a chunk: the last row of a full one may see all of it, so nothing would be wrong.
        half = replace(chunks[0], count=chunks[0].width // 2)
        first = Bench(subject, truth, half, stale(subject.make_state(), _SEED))
        everything = _all_visible(half, recipe.length, subject.layout)
        done.append(
            first.mutated("non-causal prefill", lambda feed: replace(feed, mask=everything))
        )
    return done


def _all_visible(step: Step, length: int, layout: Layout) -> Array:
    """Return a mask in which every token of the chunk sees the whole chunk, padding included."""
    columns = length + (step.width if layout is Layout.HOST_STATE else 0)
    seen = np.full((1, 1, step.width, columns), MASKED)
    begin = length if layout is Layout.HOST_STATE else step.start
    seen[..., : step.start] = 0
    seen[..., begin : begin + step.width] = 0
    return seen


def _poison(subject: Subject, state: ChainState, step: Step) -> None:
    """Put one NaN into a value row behind everything that is seen or written."""
    row = step.start + step.width
    _, values = subject.rows(state, subject.layers.start)
    values[0, row, 3] = np.nan
