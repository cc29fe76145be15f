"""Palettes of 16 values: the best for normal weights, exact where 16 values are enough."""

from __future__ import annotations

import numpy as np

from orchestrator.mlpackage.compress.palettes import palette


def restored(values: np.ndarray) -> np.ndarray:
    entries, indices = palette(values)
    assert entries.shape == (16,)
    assert indices.dtype == np.uint8
    looked_up: np.ndarray = entries[indices].reshape(values.shape)
    return looked_up


def test_normal_weights_lose_what_theory_says() -> None:
    # Lloyd-Max with 16 levels on a normal distribution: mean square error 0.009497 of the variance
    # (J. Max, IRE Trans. Inf. Theory 6 (1960), table I).
    values = np.random.default_rng(5).standard_normal((16, 4096)).astype(np.float32)
    error = float(((restored(values) - values) ** 2).mean() / values.var())
    assert 0.0090 < error < 0.0101


def test_sixteen_values_are_kept_exactly() -> None:
    values = np.random.default_rng(6).choice(np.linspace(-1, 1, 16), (16, 64)).astype(np.float16)
    assert np.array_equal(restored(values), values)


def test_equal_values_and_outliers_are_no_trouble() -> None:
    assert np.array_equal(restored(np.full((4, 8), 0.5, np.float16)), np.full((4, 8), 0.5))
    spiked = np.zeros(1000, np.float16)
    spiked[7] = 100
    assert restored(spiked)[7] == 100


def test_each_value_gets_its_nearest_entry() -> None:
    values = np.random.default_rng(7).standard_normal(500).astype(np.float16)
    entries, indices = palette(values)
    distance = np.abs(values[:, None].astype(np.float64) - entries[None].astype(np.float64))
    assert np.allclose(distance[np.arange(500), indices], distance.min(axis=1))
