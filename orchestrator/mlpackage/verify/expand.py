"""Expands compressed constants to the dense values a model computes with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from orchestrator.mlpackage.verify.errors import VerifyError

if TYPE_CHECKING:
    from orchestrator.mlpackage.verify.ops import Arguments
    from orchestrator.mlpackage.verify.tensors import Array


def expand(kind: str, arguments: Arguments) -> Array:
    """Return the dense values of a `constexpr_...` operation.

    Raises:
        VerifyError: If the form of compression is not known.
    """
    if kind == "constexpr_lut_to_dense":
        return _palette(arguments.raw("indices"), arguments.raw("lut"))
    if kind == "constexpr_blockwise_shift_scale":
        offset = arguments.raw("offset") if "offset" in arguments.values else None
        return _scaled(arguments.raw("data"), arguments.raw("scale"), offset)
    raise VerifyError(f"compressed constants of the kind {kind!r} cannot be expanded")


def _palette(indices: Array, lut: Array) -> Array:
    """Look up indices; `lut` has the axes of `indices`, then palette size and vector size."""
    if lut.shape[-1] != 1:
        raise VerifyError("palettes of vectors cannot be expanded")
    if indices.ndim == 2 and lut.shape[1] == 1:
        return _row_palette(indices, lut.reshape(lut.shape[0], -1))
    repeats = [size // groups for size, groups in zip(indices.shape, lut.shape[:-2], strict=True)]
    groups = np.meshgrid(
        *(np.arange(size) // repeat for size, repeat in zip(indices.shape, repeats, strict=True)),
        indexing="ij",
        sparse=True,
    )
    dense: Array = lut[(*groups, indices, 0)]
    return dense


def _row_palette(indices: Array, palettes: Array) -> Array:
    """Look up a palette per group of rows, group by group: one lookup of all is 20 times slower."""
    dense = np.empty(indices.shape, palettes.dtype)
    rows = indices.shape[0] // len(palettes)
    for group, palette in enumerate(palettes):
        block = slice(group * rows, (group + 1) * rows)
        dense[block] = palette[indices[block]]
    return dense


def _scaled(data: Array, scale: Array, offset: Array | None) -> Array:
    """Return (data - offset) * scale; scale and offset cover blocks of equal size."""
    values = data.astype(np.float32)
    if offset is not None:
        values -= _blown_up(offset.astype(np.float32), data.shape)
    values *= _blown_up(scale.astype(np.float32), data.shape)
    return values.astype(scale.dtype)


def _blown_up(blocks: Array, shape: tuple[int, ...]) -> Array:
    for axis, size in enumerate(shape):
        if blocks.shape[axis] not in (1, size):
            blocks = np.repeat(blocks, size // blocks.shape[axis], axis=axis)
    return blocks
