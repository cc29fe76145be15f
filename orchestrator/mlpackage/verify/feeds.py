"""What is fed to one prediction, as the app builds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.mlpackage.build.recipe import Layout

if TYPE_CHECKING:
    from orchestrator.mlpackage.verify.tensors import Array

# Large enough to vanish in a softmax, and finite: -inf gives NaN where a whole row is masked.
MASKED: Final = np.float16(-6e4)


@dataclass(frozen=True, slots=True)
class Step:
    """One prediction of a plan: `count` tokens from position `start` on."""

    role: str
    start: int
    count: int
    width: int  # tokens of the prediction; those past `count` are padding


@dataclass(frozen=True, slots=True)
class Feed:
    """Inputs of one prediction. `first` is ids, or hidden values for a later chunk."""

    first: Array
    positions: Array
    mask: Array
    logit_index: Array


def feed_for(step: Step, first: Array, length: int, layout: Layout) -> Feed:
    """Return the right inputs of a step.

    Args:
        step: The step.
        first: [1, width] ids or [1, width, model width] hidden values, padded.
        length: Rows of the cache.
        layout: With `host-state` the new rows are the last columns of the mask.
    """
    positions = np.arange(step.start, step.start + step.width, dtype=np.int32)
    mask = causal_mask(step, length, layout)
    return Feed(first, positions, mask, np.array([step.count - 1], np.int32))


def causal_mask(step: Step, length: int, layout: Layout, ahead: int = 0) -> Array:
    """Return the mask of a step, [1, 1, width, columns]: a token sees itself and what is before.

    Args:
        step: The step.
        length: Rows of the cache.
        layout: See `feed_for`.
        ahead: Rows beyond itself that a token sees; 0 is right.
    """
    rows = np.arange(step.width)[:, None]
    if layout is Layout.HOST_STATE:
        old = np.broadcast_to(np.arange(length)[None] < step.start + ahead, (step.width, length))
        new = np.arange(step.width)[None] <= rows
        seen = np.concatenate([old, new], axis=1)
    else:
        seen = np.arange(length)[None] <= step.start + rows + ahead
    return np.where(seen, np.float16(0), MASKED)[None, None]


def padded(values: Array, width: int) -> Array:
    """Return [1, width, ...]: what is given, then zeros."""
    rows = np.zeros((1, width, *values.shape[1:]), values.dtype)
    rows[0, : len(values)] = values
    return rows
