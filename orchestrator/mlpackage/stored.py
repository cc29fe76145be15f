"""How a function's weights are stored: which layer, which encoding, how many bits.

A weight is a constant that a projection or a lookup consumes. Scale vectors of norms and biases are
not weights here: they are counted with the package's bytes and no rule is about them.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from orchestrator.mlpackage.graph import BITS, produced_by, product

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from orchestrator.mlpackage.graph import BlobRef, Function, Operation, Value

# The parameter through which each kind of operation takes its weight.
_WEIGHT_PARAMETER: Final = {
    "linear": "weight",
    "conv": "weight",
    "gather": "x",
    "matmul": "y",
}
_PASSES_THROUGH: Final = frozenset({"reshape", "transpose", "expand_dims", "squeeze", "cast"})
_DATA_PARAMETERS: Final = ("indices", "data", "quantized_data", "nonzero_data")
_CONSTEXPR: Final = "constexpr_"
_CHAIN_LIMIT: Final = 8
# A decompression has at most 5 parameters; a hostile program must not make us follow more.
_PART_LIMIT: Final = 8
_PART_DEPTH: Final = 1


@dataclass(frozen=True, slots=True)
class StoredWeight:
    """One weight as one operation consumes it."""

    name: str
    consumer: str  # kind of the operation
    encoding: str  # "dense", "lut_to_dense", "blockwise_shift_scale", ...
    dtype: str  # of the stored elements
    bits: int  # per stored element
    shape: tuple[int | None, ...]  # as the consumer sees it
    lut_axes: int = 0  # axes of the weight along which the lookup table varies
    parts: tuple[BlobRef, ...] = ()  # data, tables and scales in weight files

    @property
    def element_count(self) -> int:
        """Elements as the consumer sees them."""
        return product(self.shape)

    @property
    def is_compressed(self) -> bool:
        """Whether the elements are stored in fewer bits than they compute in."""
        return self.encoding != "dense"

    @property
    def out_features(self) -> int:
        """Length of what a projection returns, or rows of a lookup table."""
        axis = -1 if self.consumer == "matmul" else 0
        return (self.shape[axis] or 1) if self.shape else 1

    @property
    def in_features(self) -> int:
        """Length of what a projection takes, or length of a lookup table's row."""
        axis = 0 if self.consumer == "matmul" else 1
        return (self.shape[axis] or 1) if len(self.shape) > 1 else 1


@dataclass(frozen=True, slots=True)
class Layers:
    """A function's weights by what they do; `hidden` is the width between layers."""

    hidden: int | None
    embedding: tuple[StoredWeight, ...]  # rows looked up by token id
    tables: tuple[StoredWeight, ...]  # other lookups: positions
    inner: tuple[StoredWeight, ...]
    output: tuple[StoredWeight, ...]  # hidden to vocabulary, in one or several pieces


def stored_weights(function: Function) -> tuple[StoredWeight, ...]:
    """Return the weights of a function in the order in which they are consumed."""
    producers = produced_by(function.block)
    found: list[StoredWeight] = []
    for operation in function.block.walk():
        parameter = _WEIGHT_PARAMETER.get(operation.kind)
        if parameter is None:
            continue
        argument = next(iter(operation.inputs.get(parameter, ())), None)
        if argument is None:
            continue
        if isinstance(argument, str):
            weight = _behind(argument, operation.kind, producers)
        else:
            weight = _dense(parameter, operation.kind, argument)
        if weight is not None:
            found.append(weight)
    return tuple(found)


def layers(weights: tuple[StoredWeight, ...]) -> Layers:
    """Sort weights into embedding, tables, inner layers and output projection.

    A chunk of a model has no embedding or no output projection; a down projection that ends a
    chunk returns the hidden width, which tells it from a projection to the vocabulary.
    """
    lookups = [weight for weight in weights if weight.consumer == "gather"]
    projections = [weight for weight in weights if weight.consumer != "gather"]
    widths = Counter(weight.in_features for weight in projections)
    widest = max(lookups, key=lambda weight: weight.element_count, default=None)
    hidden = widths.most_common(1)[0][0] if widths else (widest.in_features if widest else None)
    split = len(projections)
    while split and _leaves_the_model(projections[split - 1], hidden):
        split -= 1
    return Layers(
        hidden,
        tuple(weight for weight in lookups if weight.in_features == hidden),
        tuple(weight for weight in lookups if weight.in_features != hidden),
        tuple(projections[:split]),
        tuple(projections[split:]),
    )


def _leaves_the_model(weight: StoredWeight, hidden: int | None) -> bool:
    return weight.in_features == hidden and weight.out_features != hidden


def _behind(name: str, consumer: str, producers: Mapping[str, Operation]) -> StoredWeight | None:
    """Return the weight that a tensor is made of, None for one that is computed."""
    for _ in range(_CHAIN_LIMIT):
        operation = producers.get(name)
        if operation is None:
            return None
        if operation.kind.startswith(_CONSTEXPR):
            return _compressed(name, consumer, operation, producers)
        if operation.kind == "const":
            value = operation.attributes.get("val")
            return _dense(name, consumer, value) if value and value.blob else None
        source = operation.input_name("x")
        if operation.kind not in _PASSES_THROUGH or source is None:
            return None
        name = source
    return None


def _dense(name: str, consumer: str, value: Value) -> StoredWeight:
    kind = value.type
    parts = (value.blob,) if value.blob else ()
    return StoredWeight(
        name, consumer, "dense", kind.dtype, BITS.get(kind.dtype, 0), kind.shape, parts=parts
    )


def _compressed(
    name: str, consumer: str, operation: Operation, producers: Mapping[str, Operation]
) -> StoredWeight:
    parts = dict(_parts(operation, producers))
    data = next((parts[key] for key in _DATA_PARAMETERS if key in parts), None)
    table = parts.get("lut")
    dtype = data.type.dtype if data else "unused"
    return StoredWeight(
        name,
        consumer,
        operation.kind.removeprefix(_CONSTEXPR),
        dtype,
        _table_bits(table) if table else BITS.get(dtype, 0),
        operation.outputs[0].type.shape if operation.outputs else (),
        _lut_axes(table) if table else 0,
        tuple(value.blob for value in parts.values() if value.blob),
    )


def _parts(
    operation: Operation, producers: Mapping[str, Operation], depth: int = 0
) -> Iterator[tuple[str, Value]]:
    """Yield the constants of a decompression; iOS 16 has them as attributes, iOS 18 as inputs."""
    yield from islice(operation.attributes.items(), _PART_LIMIT)
    for parameter, arguments in islice(operation.inputs.items(), _PART_LIMIT):
        argument = arguments[0] if arguments else ""
        if not isinstance(argument, str):
            yield parameter, argument
            continue
        source = producers.get(argument)
        if source is None:
            continue
        if source.kind == "const" and "val" in source.attributes:
            yield parameter, source.attributes["val"]
        elif source.kind.startswith(_CONSTEXPR) and depth < _PART_DEPTH:
            yield from _parts(source, producers, depth + 1)  # a sparse weight's palette


def _table_bits(table: Value) -> int:
    """Return the bits of an index: iOS 18 tables are [groups..., entries, vector], iOS 16 flat."""
    shape = table.type.shape
    entries = (shape[-2] if len(shape) > 1 else shape[0] if shape else 1) or 1
    return max(1, math.ceil(math.log2(entries))) if entries > 1 else 1


def _lut_axes(table: Value) -> int:
    return sum((length or 1) > 1 for length in table.type.shape[:-2])
