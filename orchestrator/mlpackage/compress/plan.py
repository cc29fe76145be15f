"""Decides which weights of a package are compressed, and why the others are not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from orchestrator.domain.errors import UsageError
from orchestrator.mlpackage.build.recipe import BLOCK_COLUMNS, GROUP_ROWS, Weights
from orchestrator.mlpackage.errors import PackageError
from orchestrator.mlpackage.stored import layers, stored_weights

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from orchestrator.mlpackage.graph import Function, Model
    from orchestrator.mlpackage.stored import StoredWeight

# Smaller ones cost more in a palette than they save.
_LEAST_ELEMENTS: Final = 2048


class Keep(StrEnum):
    """Weights that stay as they are."""

    FIRST = "first"  # the token embedding
    LAST = "last"  # the projection to the vocabulary
    # Position tables. Compression by size alone takes them too, and linear quantization then
    # divides by zero on the all-zero sine of position 0: a poisoned table.
    TABLES = "tables"


@dataclass(frozen=True, slots=True)
class CompressionPlan:
    """Weights by name."""

    compressed: tuple[str, ...]
    kept: dict[str, str]  # name and reason


def parse_keep(text: str) -> frozenset[Keep]:
    """Read `fp16:first,last,tables`.

    Raises:
        UsageError: If it is something else.
    """
    precision, _, names = text.partition(":")
    known = {keep.value: keep for keep in Keep}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if precision != "fp16" or not set(wanted) <= set(known):
        raise UsageError(f"--keep {text!r} is not fp16: and some of {', '.join(known)}")
    return frozenset(known[name] for name in wanted)


def plan_compression(
    path: Path, model: Model, weights: Weights, keep: Iterable[Keep]
) -> CompressionPlan:
    """Return what is to be compressed.

    Args:
        path: The package, for messages.
        model: Its program; the functions of a package share their weights.
        weights: The precision wanted.
        keep: Which groups stay.

    Raises:
        UsageError: If the precision is fp16.
        PackageError: If the package is compressed already, or nothing in it can be.
    """
    if weights is Weights.FP16:
        raise UsageError("fp16 is no compression; give lut4, int8 or int4")
    kept: dict[str, str] = {}
    compressed: dict[str, None] = {}
    for function in model.functions.values():
        for weight, reason in _sorted(path, function, weights, frozenset(keep)):
            if reason:
                kept[weight.name] = reason
            else:
                compressed[weight.name] = None
    if not compressed:
        raise PackageError(path, "no weight that can be compressed")
    return CompressionPlan(tuple(compressed), kept)


def _sorted(
    path: Path, function: Function, weights: Weights, keep: frozenset[Keep]
) -> Iterable[tuple[StoredWeight, str]]:
    """Yield every weight with the reason to keep it, or an empty text."""
    found = layers(stored_weights(function))
    groups = (
        (found.embedding, Keep.FIRST, "first layer"),
        (found.output, Keep.LAST, "last layer"),
        (found.tables, Keep.TABLES, "position table"),
        (found.inner, None, ""),
    )
    for group, name, reason in groups:
        for weight in group:
            if weight.is_compressed:
                raise PackageError(path, f"compressed already: weight {weight.name[:80]}")
            yield weight, reason if name in keep else _unfit(weight, weights)


def _unfit(weight: StoredWeight, weights: Weights) -> str:
    """Return why a weight cannot be stored in a precision, or an empty text."""
    if weight.element_count < _LEAST_ELEMENTS:
        return f"only {weight.element_count} values"
    if weights is Weights.LUT4 and (weight.shape[0] or 0) % GROUP_ROWS:
        return f"{weight.shape[0]} rows are no multiple of {GROUP_ROWS}"
    if weights is Weights.INT4 and (weight.shape[1] or 0) % BLOCK_COLUMNS:
        return f"{weight.shape[1]} columns are no multiple of {BLOCK_COLUMNS}"
    return ""
