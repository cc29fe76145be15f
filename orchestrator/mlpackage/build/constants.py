"""Puts stored weights into a graph as constants, once for all functions that share them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orchestrator.mlpackage.build.draws import (
    Dense,
    Palette,
    Scaled,
    gain,
    matrix,
    rope_tables,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.mlpackage.build.coreml import Mil, MilObject
    from orchestrator.mlpackage.build.draws import Array, Stored
    from orchestrator.mlpackage.build.recipe import Recipe


@dataclass(slots=True)
class Drawn:
    """The tensors of a chunk, drawn once and kept until the chunk is saved."""

    recipe: Recipe
    on_tensor: Callable[[], None] = lambda: None  # called after each draw
    _kept: dict[str, Stored] = field(default_factory=dict)

    def matrix(self, layer: int, name: str) -> Stored:
        """Return a matrix of a layer, `q` to `down`."""
        full = f"l{layer}_{name}"
        return self._keep(full, lambda: matrix(self.recipe, full, self.recipe.layer_shapes()[name]))

    def table(self, name: str) -> Stored:
        """Return `embed_tokens` or `lm_head`."""
        return self._keep(name, lambda: table(self.recipe, name))

    def gain(self, name: str) -> Stored:
        """Return the gain of a norm: `l0_ln1`, `l0_ln2`, `ln_f`."""
        return self._keep(name, lambda: gain(self.recipe, name))

    def rope(self) -> tuple[Stored, Stored]:
        """Return cosines and sines."""
        if "rope_cos" not in self._kept:
            self._kept["rope_cos"], self._kept["rope_sin"] = rope_tables(self.recipe)
        return self._kept["rope_cos"], self._kept["rope_sin"]

    def _keep(self, name: str, draw: Callable[[], Stored]) -> Stored:
        if name not in self._kept:
            self._kept[name] = draw()
            self.on_tensor()
        return self._kept[name]


@dataclass(frozen=True, slots=True)
class Constants:
    """Writes constants into the function that is being built."""

    mil: Mil
    shared: bool  # whether several functions of one package use them

    def put(self, name: str, stored: Stored) -> MilObject:
        """Add a weight and return the variable that holds its dense values."""
        match stored:
            case Dense(values):
                return self._constant(name, values)
            case Palette(indices, palettes):
                return self.mil.mb.constexpr_lut_to_dense(
                    indices=self._constant(f"{name}_idx", self._narrow(indices, "uint4")),
                    lut=self._constant(f"{name}_lut", palettes[:, None, :, None]),
                    name=name,
                )
            case Scaled(integers, scales, bits):
                data = self._narrow(integers, "int4") if bits == 4 else integers
                return self.mil.mb.constexpr_blockwise_shift_scale(
                    data=self._constant(f"{name}_q", data),
                    scale=self._constant(f"{name}_s", scales),
                    name=name,
                )

    def _constant(self, name: str, values: Array) -> MilObject:
        variable = self.mil.mb.const(val=values, name=name)
        if self.shared:
            # Functions do not share weights by themselves: the package would hold them twice.
            variable.op.weight_id = f"w:{name}"
        return variable

    def _narrow(self, values: Array, kind: str) -> Array:
        """Mark bytes as 4-bit values; a view, because a copy of a large model is a gigabyte."""
        types = self.mil.types
        return values.view(types.nptype_from_builtin(types.string_to_builtin(kind)))
