"""The model under test: one package, or all packages of a kit as one chain."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.mlpackage.build.caches import state_shapes
from orchestrator.mlpackage.build.chunks import DECODE, PREFILL, Part, stored_bytes
from orchestrator.mlpackage.build.recipe import (
    COMPRESSED_KEY,
    PART_KEY,
    RECIPE_KEY,
    Layout,
    Recipe,
    States,
)
from orchestrator.mlpackage.package import find_packages, read_package
from orchestrator.mlpackage.verify.errors import VerifyError, WrongGraphError
from orchestrator.mlpackage.verify.interpreter import Interpreter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from orchestrator.mlpackage.build.chunks import Chunk
    from orchestrator.mlpackage.package import Package
    from orchestrator.mlpackage.verify.feeds import Feed
    from orchestrator.mlpackage.verify.tensors import Array

_MOST_LAYERS: Final = 1024

# Of one chain: states by chunk number, then by name.
ChainState = dict[int, dict[str, "Array"]]


@dataclass(frozen=True, slots=True)
class Subject:
    """Packages that belong together; chunks in order, without gaps."""

    recipe: Recipe
    layout: Layout
    chunks: tuple[Chunk, ...]
    functions: Mapping[tuple[str, int], Interpreter]  # by role and chunk number
    packages: tuple[Package, ...]

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that every chunk can play."""
        return tuple(
            role
            for role in (PREFILL, DECODE)
            if all((role, chunk.number) in self.functions for chunk in self.chunks)
        )

    @property
    def layers(self) -> range:
        """The layers it covers, numbered in the whole model."""
        return range(self.chunks[0].first_layer, self.chunks[-1].layers.stop)

    def interpreters(self) -> list[tuple[Chunk, Interpreter]]:
        """Return every function with its chunk."""
        by_number = {chunk.number: chunk for chunk in self.chunks}
        return [(by_number[number], run) for (_, number), run in self.functions.items()]

    def make_state(self) -> ChainState:
        """Return zeroed states of all chunks."""
        role = self.roles[0]
        return {
            chunk.number: self.functions[role, chunk.number].make_state() for chunk in self.chunks
        }

    def predict(self, role: str, feed: Feed, state: ChainState) -> Array:
        """Run one prediction through the chain; `state` is changed in place.

        Returns:
            Logits or hidden values, [1, rows, width].
        """
        shared = {"position_ids": feed.positions, "causal_mask": feed.mask}
        x = feed.first
        for chunk in self.chunks:
            inputs = dict(shared)
            inputs["input_ids" if chunk.has_embedding else "hidden_in"] = x
            if role == PREFILL and chunk.has_head:
                inputs["logit_index"] = feed.logit_index
            outputs = self.functions[role, chunk.number].predict(inputs, state[chunk.number])
            if self.layout is Layout.HOST_STATE:
                self._write_rows(outputs, state[chunk.number], feed.positions)
            name = "logits" if chunk.has_head else "hidden_out"
            if name not in outputs:
                raise WrongGraphError(f"no output {name!r} of chunk {chunk.number}")
            x = outputs[name]
        return x

    def rows(self, state: ChainState, layer: int) -> tuple[Array, Array]:
        """Return all key and value rows of a layer, [kv_heads, length, head_dim] each."""
        chunk = next(chunk for chunk in self.chunks if layer in chunk.layers)
        states, index = state[chunk.number], layer - chunk.first_layer
        if self.recipe.states is States.JOINT:
            joint = states["kv_cache"]
            return joint[2 * index], joint[2 * index + 1]
        return states["k_cache"][index], states["v_cache"][index]

    def _write_rows(
        self, outputs: Mapping[str, Array], states: dict[str, Array], positions: Array
    ) -> None:
        """Write the new rows as the app does with `withMultiArray` between predictions."""
        span = slice(int(positions[0]), int(positions[-1]) + 1)
        keys, values = outputs["k_rows"], outputs["v_rows"]
        if self.recipe.states is States.JOINT:
            states["kv_cache"][0::2, :, span] = keys
            states["kv_cache"][1::2, :, span] = values
        else:
            states["k_cache"][:, :, span] = keys
            states["v_cache"][:, :, span] = values


def load_subject(path: Path) -> Subject:
    """Read a package or a kit.

    Raises:
        PackageError: If a package cannot be read.
        VerifyError: If packages carry no recipe, or do not belong together.
        WrongGraphError: If a package is not of its recipe's sizes.
    """
    packages = tuple(read_package(found) for found in find_packages(path))
    recipes = {_metadata(package, RECIPE_KEY) for package in packages}
    parts = [Part.from_json(_metadata(package, PART_KEY)) for package in packages]
    if len(recipes) != 1 or len({(part.layout, part.chunk.of) for part in parts}) != 1:
        raise VerifyError(f"{path}: packages of different models")
    recipe = Recipe.from_json(recipes.pop())
    functions: dict[tuple[str, int], Interpreter] = {}
    for package, part in zip(packages, parts, strict=True):
        _check_sizes(package, part, recipe)
        for role in part.functions:
            name = role if len(part.functions) > 1 else None
            functions[role, part.chunk.number] = Interpreter(package, name)
    chunks = sorted({part.chunk for part in parts}, key=lambda chunk: chunk.number)
    if any(after.number != before.number + 1 for before, after in pairwise(chunks)):
        raise VerifyError(f"{path}: a chunk between others is missing")
    subject = Subject(recipe, parts[0].layout, tuple(chunks), functions, packages)
    if not subject.roles:
        raise VerifyError(f"{path}: neither decode nor prefill is there for all chunks")
    return subject


def _check_sizes(package: Package, part: Part, recipe: Recipe) -> None:
    """Refuse metadata that describes another model, before weights of its size are drawn.

    Raises:
        WrongGraphError: If states or sizes are not the recipe's.
    """
    if part.chunk.layers.stop > min(recipe.layers, _MOST_LAYERS):
        raise WrongGraphError(f"{package.path}: layers {part.chunk.layers} of {recipe.layers}")
    stored = stored_bytes(recipe, part.chunk)
    if COMPRESSED_KEY not in package.model.metadata and stored > package.package_bytes:
        raise WrongGraphError(f"{package.path}: smaller than the {stored} bytes of its recipe")
    wanted = state_shapes(recipe, part)
    for function in package.model.functions.values():
        if {state.name: state.type.shape for state in function.states} != wanted:
            raise WrongGraphError(f"{package.path}: the states are not {wanted}")


def _metadata(package: Package, key: str) -> str:
    text = package.model.metadata.get(key)
    if text is None:
        raise VerifyError(
            f"{package.path}: no {key!r} in its metadata",
            remedy="Only packages made by `fleet model build` say what they must compute",
        )
    return text


def stale(state: ChainState, seed: int) -> ChainState:
    """Return states full of finite leftovers, as a recycled cache has: none may be visible."""
    draws = np.random.default_rng(seed)
    return {
        number: {
            name: draws.standard_normal(array.shape, dtype=np.float32).astype(np.float16)
            for name, array in states.items()
        }
        for number, states in state.items()
    }


def copied(state: ChainState) -> ChainState:
    """Return a copy that a prediction does not change."""
    return {
        number: {name: array.copy() for name, array in states.items()}
        for number, states in state.items()
    }
