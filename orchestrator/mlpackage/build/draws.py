"""The weights of a recipe, drawn from its seed; one stream per tensor, whatever the build order.

Every matrix is drawn once as 8-bit levels of a Gaussian codebook with one scale per 16 rows. The
stored precisions are quantisations of that one model, so `int8` and `int4` are two variants of the
same weights and not two models. Drawing levels directly makes a realistic 4-bit package in
seconds, where k-means on 1.1 billion random weights takes from 9 to 35 minutes and gains nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from orchestrator.mlpackage.build.recipe import BLOCK_COLUMNS, GROUP_ROWS, Weights

if TYPE_CHECKING:
    from orchestrator.mlpackage.build.recipe import Recipe

Half: TypeAlias = npt.NDArray[np.float16]
Array: TypeAlias = npt.NDArray[Any]

LEVELS: Final = 256
# Quantiles of the normal distribution: equally likely levels give normal weights.
CODEBOOK: Final = np.array([NormalDist().inv_cdf((i + 0.5) / LEVELS) for i in range(LEVELS)])
_SIXTEEN: Final = CODEBOOK.reshape(16, 16).mean(axis=1)  # of the levels that share 4 upper bits
_SCALE_SPREAD: Final = 0.05
_TABLE_STD: Final = 0.32  # of embedding and head
_GAIN_SPREAD: Final = 0.1


@dataclass(frozen=True, slots=True)
class Dense:
    """A tensor stored as it is."""

    values: Half

    def dense(self) -> Half:
        """Return the values the model computes with."""
        return self.values


@dataclass(frozen=True, slots=True)
class Palette:
    """4-bit indices into one palette of 16 values per group of rows."""

    indices: npt.NDArray[np.uint8]  # [rows, columns], 0 to 15
    palettes: Half  # [rows / 16, 16]

    def dense(self) -> Half:
        """Return the values the model computes with."""
        return _look_up(self.palettes, self.indices)


@dataclass(frozen=True, slots=True)
class Scaled:
    """Signed integers with a scale per row (8 bits) or per block of 32 columns (4 bits)."""

    integers: npt.NDArray[np.int8]  # [rows, columns]
    scales: Half  # [rows, blocks]
    bits: int

    def dense(self) -> Half:
        """Return the values the model computes with."""
        rows, columns = self.integers.shape
        blocks = self.scales.shape[1]
        split = self.integers.reshape(rows, blocks, columns // blocks).astype(np.float32)
        split *= self.scales[:, :, None].astype(np.float32)
        return split.astype(np.float16).reshape(rows, columns)


Stored: TypeAlias = Dense | Palette | Scaled


def stream(seed: int, name: str) -> np.random.Generator:
    """Return the random stream of one tensor."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:8], "little")))


def matrix(recipe: Recipe, name: str, shape: tuple[int, int]) -> Stored:
    """Return one matrix of a layer in the recipe's precision.

    Args:
        recipe: Gives seed and precision.
        name: Its stream, `l3_q`.
        shape: [outputs, inputs]; outputs divide by 16, inputs by 32.
    """
    levels, scales = _levels(recipe.seed, name, shape, 1.0 / np.sqrt(shape[1]))
    match recipe.weights:
        case Weights.FP16:
            return Dense(_look_up(_half(CODEBOOK[None] * scales[:, None]), levels))
        case Weights.LUT4:
            return Palette(levels >> np.uint8(4), _half(_SIXTEEN[None] * scales[:, None]))
        case Weights.INT8:
            return _int8(levels, scales)
        case Weights.INT4:
            return _int4(levels, scales)


def table(recipe: Recipe, name: str) -> Dense:
    """Return embedding (`embed_tokens`) or head (`lm_head`), [vocab, width], always fp16."""
    levels, scales = _levels(recipe.seed, name, (recipe.vocab, recipe.width), _TABLE_STD)
    return Dense(_look_up(_half(CODEBOOK[None] * scales[:, None]), levels))


def gain(recipe: Recipe, name: str) -> Dense:
    """Return the gain of a norm, [width]; not all ones, so that a dropped gain shows."""
    draws = stream(recipe.seed, name).standard_normal(recipe.width)
    return Dense(_half(1.0 + _GAIN_SPREAD * draws))


def rope_tables(recipe: Recipe) -> tuple[Dense, Dense]:
    """Return cosines and sines, [length, head_dim]: both halves of a row are equal."""
    powers = np.arange(0, recipe.head_dim, 2, dtype=np.float64) / recipe.head_dim
    angles = np.arange(recipe.length, dtype=np.float64)[:, None] / recipe.theta ** powers[None]
    angles = np.concatenate([angles, angles], axis=-1)
    return Dense(_half(np.cos(angles))), Dense(_half(np.sin(angles)))


def _levels(
    seed: int, name: str, shape: tuple[int, int], std: float
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float64]]:
    draws = stream(seed, name)
    levels = np.frombuffer(draws.bytes(shape[0] * shape[1]), np.uint8).reshape(shape)
    scales = std * (1.0 + _SCALE_SPREAD * draws.standard_normal(shape[0] // GROUP_ROWS))
    return levels, scales


def _int8(levels: npt.NDArray[np.uint8], scales: npt.NDArray[np.float64]) -> Scaled:
    integers = np.rint(CODEBOOK / CODEBOOK[-1] * 127).astype(np.int8)[levels]
    rows = np.repeat(scales * CODEBOOK[-1] / 127, GROUP_ROWS)[:, None]
    return Scaled(integers, _half(rows), bits=8)


def _int4(levels: npt.NDArray[np.uint8], scales: npt.NDArray[np.float64]) -> Scaled:
    """Quantise each block by its own largest magnitude, as a converter would."""
    rows, columns = levels.shape
    blocks = levels.reshape(rows, columns // BLOCK_COLUMNS, BLOCK_COLUMNS)
    # The codebook is symmetric and rising: the largest magnitude is at the outermost level.
    outermost = np.maximum(blocks.max(axis=2), LEVELS - 1 - blocks.min(axis=2))
    steps = np.rint(CODEBOOK[None] / CODEBOOK[LEVELS // 2 :, None] * 7).clip(-7, 7)
    integers = steps.astype(np.int8)[outermost[:, :, None] - LEVELS // 2, blocks]
    per_block = CODEBOOK[outermost] * np.repeat(scales, GROUP_ROWS)[:, None] / 7
    return Scaled(integers.reshape(rows, columns), _half(per_block), bits=4)


def _look_up(tables: Half, levels: npt.NDArray[np.uint8]) -> Half:
    """Return `tables[group of the row, level]`, group by group to stay in the cache."""
    out = np.empty(levels.shape, np.float16)
    rows = levels.shape[0] // tables.shape[0]
    for group, entries in enumerate(tables):
        block = slice(group * rows, (group + 1) * rows)
        np.take(entries, levels[block], out=out[block], mode="clip")
    return out


def _half(values: npt.NDArray[np.float64]) -> Half:
    return values.astype(np.float16)
