"""The best 16 values for a group of weights: one-dimensional k-means on sorted values.

Sorted values make a cluster a range and its mean a difference of two running sums, so a step of
Lloyd's algorithm costs 15 searches whatever the size. General k-means on one billion weights in
groups of 16 rows takes about 35 minutes, and its workers deadlock when they are forked after
OpenMP has run; this needs neither workers nor scikit-learn.

Source: S. P. Lloyd, IEEE Trans. Inf. Theory 28 (1982), 129-137.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from orchestrator.mlpackage.build.draws import Array

ENTRIES: Final = 16
_STEPS: Final = 30  # means move by less than fp16 can tell after about 20


def palette(values: Array) -> tuple[Array, Array]:
    """Return palette and indices of a group of weights.

    Args:
        values: Any shape, finite.

    Returns:
        16 values in the type of `values`, ascending, and one index per value, flat, uint8.
    """
    ordered = np.sort(values.ravel().astype(np.float64))
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    centers = np.quantile(ordered, (np.arange(ENTRIES) + 0.5) / ENTRIES)
    for _ in range(_STEPS):
        cuts = np.searchsorted(ordered, (centers[1:] + centers[:-1]) / 2)
        bounds = np.concatenate([[0], cuts, [ordered.size]])
        counts = np.diff(bounds)
        means = np.diff(sums[bounds]) / np.maximum(counts, 1)
        moved = np.where(counts > 0, means, centers)
        if np.array_equal(moved, centers):
            break
        centers = np.sort(moved)
    entries = np.sort(centers.astype(values.dtype))
    edges = (entries[1:].astype(np.float64) + entries[:-1].astype(np.float64)) / 2
    indices = np.searchsorted(edges, values.ravel().astype(np.float64)).astype(np.uint8)
    return entries, indices
