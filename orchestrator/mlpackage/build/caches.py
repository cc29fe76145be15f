"""Three ways to keep keys and values between predictions, behind one `extend`.

A state is written with `slice_update` and `coreml_update_state`, one write per layer. The range is
`position_ids[0]` up to `position_ids[-1] + 1`, so that no shape has to be computed on the phone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from orchestrator.mlpackage.build.coreml import Mil, MilObject
from orchestrator.mlpackage.build.recipe import Layout, States

if TYPE_CHECKING:
    from orchestrator.mlpackage.build.chunks import Part
    from orchestrator.mlpackage.build.recipe import Recipe

Var: TypeAlias = MilObject  # a variable of the graph


class Cache(Protocol):
    """The keys and values of one function."""

    def extend(self, layer: int, keys: Var, values: Var) -> tuple[Var, Var]:
        """Add the new rows of a layer and return all rows of it.

        Args:
            layer: Numbered in the package, from 0.
            keys: [1, kv_heads, q, head_dim].
            values: As `keys`.

        Returns:
            Keys and values, [1, kv_heads, rows, head_dim].
        """
        ...

    def outputs(self) -> list[Var]:
        """Return what the function gives beside its result."""
        ...


def state_shapes(recipe: Recipe, part: Part) -> dict[str, tuple[int, ...]]:
    """Return the states of a package by name."""
    rows = (recipe.kv_heads, recipe.length, recipe.head_dim)
    if recipe.states is States.JOINT:
        return {"kv_cache": (2 * part.chunk.layer_count, *rows)}
    return dict.fromkeys(("k_cache", "v_cache"), (part.chunk.layer_count, *rows))


def cache_for(
    mb: Mil,
    recipe: Recipe,
    layout: Layout,
    states: dict[str, Var],
    span: tuple[Var, Var],
) -> Cache:
    """Return the cache of a function.

    Args:
        mb: The op builder.
        recipe: Gives the sizes.
        layout: Says who writes.
        states: The function's state inputs, by name.
        span: First position of the chunk and the one after its last, int32 [1] each.
    """
    slots = [_Slots(mb, recipe, variable, span) for variable in states.values()]
    if layout is Layout.HOST_STATE:
        return _HostWritten(mb, slots)
    return _Written(slots)


@dataclass(slots=True)
class _Slots:
    """One state seen as numbered slots of [kv_heads, length, head_dim]."""

    mb: Mil
    recipe: Recipe
    state: Var
    span: tuple[Var, Var]
    current: Var = None

    def write(self, slot: int, rows: Var) -> None:
        begin, end = self._corner(slot, self.span[0], 0), self._corner(slot + 1, self.span[1], 1)
        changed = self.mb.slice_update(x=self._now(), update=rows, begin=begin, end=end)
        self.current = self.mb.coreml_update_state(state=self.state, value=changed)

    def read(self, slot: int) -> Var:
        recipe = self.recipe
        size = [1, recipe.kv_heads, recipe.length, recipe.head_dim]
        return self.mb.slice_by_size(x=self._now(), begin=[slot, 0, 0, 0], size=size)

    def _now(self) -> Var:
        if self.current is None:
            self.current = self.mb.read_state(input=self.state)
        return self.current

    def _corner(self, slot: int, row: Var, far: int) -> Var:
        recipe = self.recipe
        head, depth = far * recipe.kv_heads, far * recipe.head_dim
        return self.mb.concat(values=[one(slot), one(head), row, one(depth)], axis=0)


@dataclass(slots=True)
class _Written:
    """The graph writes: a pair of states, or one state with keys and values side by side."""

    slots: list[_Slots]

    def extend(self, layer: int, keys: Var, values: Var) -> tuple[Var, Var]:
        key_slots, value_slots = self.slots[0], self.slots[-1]
        joint = key_slots is value_slots
        key_slot, value_slot = (2 * layer, 2 * layer + 1) if joint else (layer, layer)
        key_slots.write(key_slot, keys)
        value_slots.write(value_slot, values)
        return key_slots.read(key_slot), value_slots.read(value_slot)

    def outputs(self) -> list[Var]:
        return []


@dataclass(slots=True)
class _HostWritten:
    """The graph only reads; the new rows are outputs, which the host writes between predictions."""

    mb: Mil
    slots: list[_Slots]
    new_rows: list[list[Var]] = field(default_factory=lambda: [[], []])

    def extend(self, layer: int, keys: Var, values: Var) -> tuple[Var, Var]:
        joint = len(self.slots) == 1
        places = (2 * layer, 2 * layer + 1) if joint else (layer, layer)
        both = []
        for index, rows in enumerate((keys, values)):
            self.new_rows[index].append(rows)
            old = self.slots[0 if joint else index].read(places[index])
            both.append(self.mb.concat(values=[old, rows], axis=2))
        return both[0], both[1]

    def outputs(self) -> list[Var]:
        names = ("k_rows", "v_rows")
        return [
            # A single row would be an output that is also an input of the concat above.
            self.mb.identity(x=rows[0], name=name)
            if len(rows) == 1
            else self.mb.concat(values=rows, axis=0, name=name)
            for rows, name in zip(self.new_rows, names, strict=True)
        ]


def one(value: int) -> Var:
    """Return one int32 as the graph's corners want it, [1]."""
    return np.array([value], np.int32)
