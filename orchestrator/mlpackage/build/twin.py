"""The `safetensors` twin of a model: the same stored weights for an engine without Core ML.

Names and forms: `embed_tokens`, `lm_head`, `rope_cos`, `rope_sin`, `ln_f`, `l0_ln1`, `l0_ln2` are
F16. A matrix `l0_q` [rows, columns] is one of

* fp16: `l0_q` F16;
* lut4: `l0_q.indices` U8 [rows, columns / 2], the even column in the low bits, and `l0_q.palettes`
  F16 [rows / 16, 16];
* int8: `l0_q.integers` I8 and `l0_q.scales` F16 [rows, 1];
* int4: `l0_q.integers` U8 [rows, columns / 2], two's complement, packed as above, and
  `l0_q.scales` F16 [rows, columns / 32].

`__metadata__` holds the recipe under `fleet.recipe`. Source of the file format:
github.com/huggingface/safetensors (README, "Format").
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from orchestrator.mlpackage.build.draws import Dense, Palette, Scaled
from orchestrator.mlpackage.build.recipe import BLOCK_COLUMNS, GROUP_ROWS, RECIPE_KEY, Weights

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from orchestrator.mlpackage.build.draws import Array, Stored
    from orchestrator.mlpackage.build.recipe import Recipe

_Entry: TypeAlias = tuple[str, tuple[int, ...]]  # safetensors dtype and shape
_ITEM_BYTES: Final = {"F16": 2, "I8": 1, "U8": 1}


class TwinWriter:
    """Writes the twin tensor by tensor, so that a large model is never held twice.

    Tensors are added in the order of `planned`.
    """

    def __init__(self, path: Path, recipe: Recipe) -> None:
        self._plan = planned(recipe)
        self._left = list(self._plan)
        self._file = path.open("wb")
        header = _header(recipe, self._plan)
        self._file.write(len(header).to_bytes(8, "little") + header)

    def __enter__(self) -> TwinWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def add(self, name: str, stored: Stored) -> None:
        """Write one weight.

        Raises:
            ValueError: If it is not the next one, or has another form than planned.
        """
        for suffix, array in _arrays(stored):
            full = name + suffix
            if not self._left or self._left[0] != full or self._plan[full][1] != array.shape:
                raise ValueError(f"{full} of {array.shape} is not the next tensor of the twin")
            self._left.pop(0)
            self._file.write(np.ascontiguousarray(array).data)


def planned(recipe: Recipe) -> dict[str, _Entry]:
    """Return every tensor of the twin in file order."""
    table: _Entry = ("F16", (recipe.vocab, recipe.width))
    angles: _Entry = ("F16", (recipe.length, recipe.head_dim))
    gain: _Entry = ("F16", (recipe.width,))
    plan = {"embed_tokens": table, "rope_cos": angles, "rope_sin": angles}
    for layer in range(recipe.layers):
        plan |= {f"l{layer}_ln1": gain, f"l{layer}_ln2": gain}
        for name, shape in recipe.layer_shapes().items():
            plan |= _matrix_entries(f"l{layer}_{name}", shape, recipe.weights)
    return plan | {"ln_f": gain, "lm_head": table}


def _matrix_entries(name: str, shape: tuple[int, int], weights: Weights) -> dict[str, _Entry]:
    rows, columns = shape
    match weights:
        case Weights.FP16:
            return {name: ("F16", shape)}
        case Weights.LUT4:
            return {
                f"{name}.indices": ("U8", (rows, columns // 2)),
                f"{name}.palettes": ("F16", (rows // GROUP_ROWS, 16)),
            }
        case Weights.INT8:
            return {f"{name}.integers": ("I8", shape), f"{name}.scales": ("F16", (rows, 1))}
        case Weights.INT4:
            return {
                f"{name}.integers": ("U8", (rows, columns // 2)),
                f"{name}.scales": ("F16", (rows, columns // BLOCK_COLUMNS)),
            }


def _arrays(stored: Stored) -> list[tuple[str, Array]]:
    match stored:
        case Dense(values):
            return [("", values)]
        case Palette(indices, palettes):
            return [(".indices", _packed(indices)), (".palettes", palettes)]
        case Scaled(integers, scales, 8):
            return [(".integers", integers), (".scales", scales)]
        case Scaled(integers, scales, _):
            return [(".integers", _packed(integers.view(np.uint8))), (".scales", scales)]


def _packed(nibbles: Array) -> Array:
    """Pack values two a byte, the even column in the low bits, as Core ML does."""
    return (nibbles[:, 0::2] & 0x0F) | (nibbles[:, 1::2] << 4)


def _header(recipe: Recipe, plan: dict[str, _Entry]) -> bytes:
    entries: dict[str, object] = {"__metadata__": {RECIPE_KEY: recipe.as_json()}}
    offset = 0
    for name, (dtype, shape) in plan.items():
        size = int(np.prod(shape)) * _ITEM_BYTES[dtype]
        entries[name] = {
            "dtype": dtype,
            "shape": list(shape),
            "data_offsets": [offset, offset + size],
        }
        offset += size
    text = json.dumps(entries, separators=(",", ":")).encode()
    # Readers map the file: the data begins on an 8-byte boundary.
    return text + b" " * (-len(text) % 8)
