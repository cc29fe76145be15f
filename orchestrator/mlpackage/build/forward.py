"""The independent forward: fp32, the whole sequence at once, no cache, no graph.

It is the oracle of goldens and of `fleet model verify`. Weights come from the recipe's seed and
never from a package, so an error in graph, cache, mask, packing or file shows as a difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.mlpackage.build.draws import Stored
    from orchestrator.mlpackage.build.recipe import Recipe

Single: TypeAlias = npt.NDArray[np.float32]


class WeightSource(Protocol):
    """Where the forward takes its weights from: drawn from the seed, as a rule."""

    @property
    def recipe(self) -> Recipe:
        """The model."""
        ...

    def matrix(self, layer: int, name: str) -> Stored:
        """Return a matrix of a layer, `q` to `down`."""
        ...

    def table(self, name: str) -> Stored:
        """Return `embed_tokens` or `lm_head`."""
        ...

    def gain(self, name: str) -> Stored:
        """Return the gain of a norm: `l0_ln1`, `l0_ln2`, `ln_f`."""
        ...


@dataclass(slots=True)
class Sequence32:
    """One prompt on its way through the layers."""

    ids: Sequence[int]
    hidden: Single  # [tokens, width], after the last layer that was run
    keys: dict[int, Single] = field(default_factory=dict)  # by layer, [kv_heads, tokens, head_dim]
    values: dict[int, Single] = field(default_factory=dict)


def embed(source: WeightSource, ids: Sequence[int]) -> Sequence32:
    """Return a prompt before the first layer."""
    table = source.table("embed_tokens").dense()
    return Sequence32(ids, table[np.asarray(ids)].astype(np.float32))


def run_layers(source: WeightSource, layers: range, prompts: Sequence[Sequence32]) -> None:
    """Advance prompts through layers; each matrix is expanded once for all of them."""
    for layer in layers:
        weights = _Layer(source, layer)
        for prompt in prompts:
            prompt.hidden = weights.apply(prompt)


def logits(source: WeightSource, prompt: Sequence32) -> Single:
    """Return the logits at every position, [tokens, vocab]."""
    normed = _norm(prompt.hidden, source.gain("ln_f").dense(), source.recipe.epsilon)
    return normed @ source.table("lm_head").dense().astype(np.float32).T


class _Layer:
    """The matrices of one layer in fp32."""

    def __init__(self, source: WeightSource, layer: int) -> None:
        self._recipe: Recipe = source.recipe
        self._number = layer
        self._matrices = {
            name: source.matrix(layer, name).dense().astype(np.float32)
            for name in self._recipe.layer_shapes()
        }
        self._gains = [source.gain(f"l{layer}_{name}").dense() for name in ("ln1", "ln2")]

    def apply(self, prompt: Sequence32) -> Single:
        """Return the hidden values after this layer; keeps the layer's keys and values."""
        x = prompt.hidden
        h = _norm(x, self._gains[0], self._recipe.epsilon)
        queries = _rotated(self._split(h, "q"), self._recipe.theta)
        keys, values = _rotated(self._split(h, "k"), self._recipe.theta), self._split(h, "v")
        prompt.keys[self._number], prompt.values[self._number] = keys, values
        x = x + self._product(_attended(queries, keys, values), "o")
        h = _norm(x, self._gains[1], self._recipe.epsilon)
        gate = self._product(h, "gate")
        inner = gate / (1 + np.exp(-gate)) * self._product(h, "up")
        return x + self._product(inner, "down")

    def _product(self, x: Single, name: str) -> Single:
        return x @ self._matrices[name].T

    def _split(self, h: Single, name: str) -> Single:
        """Return [heads, tokens, head_dim]."""
        rows = self._product(h, name)
        return rows.reshape(len(h), -1, self._recipe.head_dim).transpose(1, 0, 2)


def _attended(queries: Single, keys: Single, values: Single) -> Single:
    """Return causal grouped-query attention, [tokens, heads * head_dim]."""
    heads, tokens, head_dim = queries.shape
    group = heads // len(keys)
    keys, values = np.repeat(keys, group, axis=0), np.repeat(values, group, axis=0)
    scores = queries @ keys.transpose(0, 2, 1) / np.sqrt(np.float32(head_dim))
    scores += np.triu(np.full((tokens, tokens), -np.inf, np.float32), 1)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    mixed: Single = (weights @ values).transpose(1, 0, 2).reshape(tokens, heads * head_dim)
    return mixed


def _rotated(x: Single, theta: float) -> Single:
    """Return RoPE of [heads, tokens, head_dim], angles in full precision."""
    tokens, head_dim = x.shape[1:]
    powers = np.arange(0, head_dim, 2, dtype=np.float64) / head_dim
    angles = np.arange(tokens, dtype=np.float64)[:, None] / theta ** powers[None]
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    first, second = np.split(x, 2, axis=-1)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def _norm(x: Single, gain: npt.NDArray[np.float16], epsilon: float) -> Single:
    mean = (x * x).mean(axis=-1, keepdims=True)
    normed: Single = x / np.sqrt(mean + np.float32(epsilon)) * gain.astype(np.float32)
    return normed
