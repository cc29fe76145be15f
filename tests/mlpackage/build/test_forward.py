"""The oracle itself: causal, position-aware, and equal to attention written out by hand."""

from __future__ import annotations

import numpy as np

from orchestrator.mlpackage.build import forward
from orchestrator.mlpackage.build.constants import Drawn
from tests.mlpackage.making import SMALL

IDS = [5, 9, 2, 77, 31, 8]


def logits_of(ids: list[int]) -> np.ndarray:
    drawn = Drawn(SMALL)
    sequence = forward.embed(drawn, ids)
    forward.run_layers(drawn, range(SMALL.layers), [sequence])
    return forward.logits(drawn, sequence)


def test_later_tokens_do_not_change_earlier_logits() -> None:
    assert np.allclose(logits_of(IDS)[:4], logits_of([*IDS[:4], 400, 3])[:4], atol=1e-4)


def test_the_order_of_tokens_matters() -> None:
    swapped = [IDS[1], IDS[0], *IDS[2:]]
    assert np.abs(logits_of(IDS)[-1] - logits_of(swapped)[-1]).max() > 0.05


def test_one_token_attends_to_itself_alone() -> None:
    drawn = Drawn(SMALL)
    one = forward.embed(drawn, [5])
    forward.run_layers(drawn, range(1), [one])

    def weight(name: str) -> np.ndarray:
        return drawn.matrix(0, name).dense().astype(np.float64)

    x = drawn.table("embed_tokens").dense()[5].astype(np.float64)
    h = x / np.sqrt((x * x).mean() + SMALL.epsilon) * drawn.gain("l0_ln1").dense()
    values = np.tile(weight("v") @ h, SMALL.heads // SMALL.kv_heads)
    x = x + weight("o") @ values
    h = x / np.sqrt((x * x).mean() + SMALL.epsilon) * drawn.gain("l0_ln2").dense()
    gate = weight("gate") @ h
    x = x + weight("down") @ (gate / (1 + np.exp(-gate)) * (weight("up") @ h))
    assert np.allclose(one.hidden[0], x, atol=1e-5)
