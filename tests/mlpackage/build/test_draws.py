"""Weights come from the seed, and the precisions are forms of the same weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.mlpackage.build.draws import (
    Palette,
    Scaled,
    gain,
    matrix,
    rope_tables,
    table,
)
from orchestrator.mlpackage.build.recipe import TINY, Weights
from orchestrator.mlpackage.verify.weights_match import relative_error

SHAPE = (256, 704)


def dense(weights: Weights, name: str = "l0_down", seed: int = 7) -> np.ndarray:
    return matrix(replace(TINY, weights=weights, seed=seed), name, SHAPE).dense()


@pytest.mark.parametrize(
    ("weights", "least", "most"),
    [(Weights.INT8, 0.002, 0.02), (Weights.LUT4, 0.05, 0.15), (Weights.INT4, 0.05, 0.15)],
)
def test_precisions_are_roundings_of_one_model(weights: Weights, least: float, most: float) -> None:
    assert least < relative_error(dense(weights), dense(Weights.FP16)) < most


def test_weights_are_normal_with_the_spread_of_their_inputs() -> None:
    values = dense(Weights.FP16).astype(np.float64)
    assert abs(values.std() * np.sqrt(SHAPE[1]) - 1) < 0.02
    assert abs(values.mean()) < 0.001


def test_a_tensor_is_the_same_whenever_it_is_drawn_and_another_by_name_or_seed() -> None:
    assert np.array_equal(dense(Weights.INT8), dense(Weights.INT8))
    assert not np.array_equal(dense(Weights.INT8), dense(Weights.INT8, "l1_down"))
    assert not np.array_equal(dense(Weights.INT8), dense(Weights.INT8, seed=8))


def test_stored_values_fit_their_bits() -> None:
    palette = matrix(replace(TINY, weights=Weights.LUT4), "l0_down", SHAPE)
    assert isinstance(palette, Palette)
    assert palette.indices.max() == 15
    assert palette.palettes.shape == (16, 16)
    scaled = matrix(replace(TINY, weights=Weights.INT4), "l0_down", SHAPE)
    assert isinstance(scaled, Scaled)
    assert (scaled.integers.min(), scaled.integers.max()) == (-7, 7)
    assert scaled.scales.shape == (256, 22)


def test_gains_are_not_ones_so_that_a_dropped_gain_shows() -> None:
    assert np.abs(gain(TINY, "l0_ln1").dense() - 1).mean() > 0.05


def test_the_sine_of_position_zero_is_zero_and_tables_are_fp16() -> None:
    cos, sin = rope_tables(TINY)
    assert np.array_equal(cos.dense()[0], np.ones(64))
    assert np.array_equal(sin.dense()[0], np.zeros(64))
    assert table(TINY, "lm_head").dense().dtype == np.float16
