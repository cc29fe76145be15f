"""Canary prompts and the logits they must give, computed by the independent forward.

An fp16 engine does not reproduce fp32 logits exactly, and two tokens can be close: the gates are
the same first token on 99 % of positions, near ties left out, and that token among the engine's
first three on all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from orchestrator.mlpackage.build.draws import stream

if TYPE_CHECKING:
    from orchestrator.mlpackage.build.forward import Sequence32, Single
    from orchestrator.mlpackage.build.recipe import Recipe

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

TOP: Final = 5
# Under one chunk, one token over it, and two chunks with a rest; a large model gets the last alone.
_LENGTHS: Final = (5, 65, 130)
_LARGE_LENGTHS: Final = (70,)
LARGE_PARAMETERS: Final = 100_000_000
# In standard deviations of the logits; twice the error that fp16 storage gives.
NEAR_TIE: Final = 0.02


def canary_prompts(recipe: Recipe) -> list[list[int]]:
    """Return the prompts of a recipe, drawn from its seed."""
    large = recipe.parameters > LARGE_PARAMETERS
    draws = stream(recipe.seed, "canary")
    return [
        draws.integers(0, recipe.vocab, min(length, recipe.length)).tolist()
        for length in (_LARGE_LENGTHS if large else _LENGTHS)
    ]


def golden_entry(prompt: Sequence32, logits: Single) -> Json:
    """Return a prompt with the best five tokens of every position, best first.

    `near_ties` are the positions where the two best are closer than fp16 can tell apart.
    """
    best = np.argsort(-logits, axis=-1, kind="stable")[:, :TOP]
    values = np.take_along_axis(logits, best, axis=-1)
    spread = float(logits.std())
    near = np.flatnonzero(values[:, 0] - values[:, 1] < NEAR_TIE * spread)
    return {
        "ids": list(map(int, prompt.ids)),
        "logit_std": round(spread, 3),
        "near_ties": near.tolist(),
        "top_ids": best.tolist(),
        "top_logits": np.round(values.astype(np.float64), 3).tolist(),
    }


def goldens_document(recipe: Recipe, entries: list[Json]) -> dict[str, Json]:
    """Return `goldens.json`."""
    return {
        "name": recipe.name,
        "weights": recipe.weights.value,
        "gates": {"top1_equal": 0.99, "top1_in_top3": 1.0},
        "prompts": entries,
    }
