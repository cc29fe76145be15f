"""What a model must compute for a sequence, from the independent forward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from orchestrator.mlpackage.build import forward
from orchestrator.mlpackage.build.constants import Drawn
from orchestrator.mlpackage.build.draws import Dense, stream
from orchestrator.mlpackage.verify.errors import WrongGraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orchestrator.mlpackage.build.forward import Single, WeightSource
    from orchestrator.mlpackage.build.recipe import Recipe
    from orchestrator.mlpackage.verify.subject import Subject
    from orchestrator.mlpackage.verify.tensors import Array


@dataclass(frozen=True, slots=True)
class Truth:
    """Right values at every position of a sequence."""

    ids: Array  # [tokens]
    first: Array  # what the chain takes: ids, or hidden values [tokens, width] fp16
    last: Single  # what it gives: logits [tokens, vocab] or hidden values [tokens, width]
    keys: Mapping[int, Single]  # by layer, [kv_heads, tokens, head_dim]
    values: Mapping[int, Single]

    @property
    def spread(self) -> float:
        """Standard deviation of what the chain gives: errors are judged in it."""
        return float(self.last.std())


def truth_for(
    subject: Subject, tokens: int, source_of: Callable[[], WeightSource] | None = None
) -> Truth:
    """Return what a subject must compute for a sequence drawn from the recipe's seed.

    Args:
        subject: The chain; its chunks say where it begins and ends.
        tokens: Length of the sequence.
        source_of: Makes the source of weights of one layer; drawn from the seed by default.
    """
    make = source_of or (lambda: Drawn(subject.recipe))
    ids = stream(subject.recipe.seed, "verify").integers(0, subject.recipe.vocab, tokens)
    sequence = forward.embed(make(), ids.tolist())
    first: Array = ids.astype(np.int32)
    for layer in range(subject.layers.stop):
        if layer and layer == subject.layers.start:
            first = sequence.hidden.astype(np.float16)
        # A source of its own per layer: a large model's weights are never all in memory.
        forward.run_layers(make(), range(layer, layer + 1), [sequence])
    head = subject.chunks[-1].has_head
    last = forward.logits(make(), sequence) if head else sequence.hidden
    return Truth(ids, first, last, sequence.keys, sequence.values)


class PackageWeights:
    """The weights a package itself holds, for one that was compressed after its build."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    @property
    def recipe(self) -> Recipe:
        """The model."""
        return self._subject.recipe

    def matrix(self, layer: int, name: str) -> Dense:
        """Return a matrix of a layer."""
        return self._find(f"l{layer}_{name}")

    def table(self, name: str) -> Dense:
        """Return embedding or head."""
        return self._find(f"{name}_weight")

    def gain(self, name: str) -> Dense:
        """Return the gain of a norm."""
        return self._find(name)

    def _find(self, name: str) -> Dense:
        for _, interpreter in self._subject.interpreters():
            if name in set(interpreter.weight_names()):
                return Dense(interpreter.weight(name))
        raise WrongGraphError(f"no weight {name!r}")
