"""The key/value cache of a function, read from its states and from how the graph writes them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.mlpackage.graph import produced_by, product

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.mlpackage.graph import Feature, Function, Operation

# The last axis of what these return is not one of query rows.
_ATTENTION: Final = frozenset({"softmax", "scaled_dot_product_attention"})


@dataclass(frozen=True, slots=True)
class CachedState:
    """One state and what the graph does with it."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    size_bytes: int
    reads: int
    writes: int
    length_axis: int | None  # the axis along which rows are written; None: none was found

    @property
    def length(self) -> int | None:
        """Rows that the state holds, which is the longest context; None if unknown."""
        return None if self.length_axis is None else self.shape[self.length_axis]


@dataclass(frozen=True, slots=True)
class Architecture:
    """Constants of a decoder, as far as its graph shows them."""

    layers: int | None
    kv_heads: int | None
    head_dim: int | None
    query_heads: int | None
    maximum_length: int | None  # rows of the longest cache
    kv_bytes_per_token: int
    kv_bytes: int  # all states at full length

    def kv_bytes_at(self, length: int) -> int:
        """Return the bytes of `length` rows; states are allocated whole, so this is no saving."""
        return self.kv_bytes_per_token * length


def cached_states(function: Function) -> tuple[CachedState, ...]:
    """Return every declared state of a function with its reads, writes and length axis."""
    producers = produced_by(function.block)
    operations = list(function.block.walk())
    reads = Counter(op.input_name("input") for op in operations if op.kind == "read_state")
    writes: dict[str | None, list[Operation]] = {}
    for operation in operations:
        if operation.kind == "write_state":
            writes.setdefault(operation.input_name("input"), []).append(operation)
    mask_lengths = _mask_lengths(function)
    return tuple(
        _cached(state, reads[state.name], writes.get(state.name, []), producers, mask_lengths)
        for state in function.states
    )


def aliased_outputs(function: Function) -> tuple[str, ...]:
    """Return the outputs that are also what a state write takes: such a model may not load."""
    declared = {output.name for output in function.outputs} | set(function.block.outputs)
    written = (op.input_name("data") for op in function.block.walk() if op.kind == "write_state")
    return tuple(sorted({name for name in written if name in declared and name is not None}))


def architecture(function: Function) -> Architecture:
    """Return the constants of a function's decoder.

    A cache is [..., kv heads, length, head dim]: layers lie in the leading axes of one state or in
    a state each, keys and values in two states or side by side in one. So every slot of every
    state is half a layer.
    """
    states = [state for state in cached_states(function) if len(state.shape) >= 3]
    slots = sum(product(state.shape[:-3]) for state in states)
    lengths = [state.length for state in states if state.length]
    first = states[0] if states else None
    return Architecture(
        layers=slots // 2 if slots else None,
        kv_heads=_heads(first) if first else None,
        head_dim=first.shape[-1] if first else None,
        query_heads=_query_heads(function),
        maximum_length=max(lengths, default=None),
        kv_bytes_per_token=sum(
            state.size_bytes // state.length for state in states if state.length
        ),
        kv_bytes=function.state_bytes,
    )


def _heads(state: CachedState) -> int | None:
    # [batch, length, heads, dim] is met too: then the rows are where heads would be.
    return state.shape[-2] if state.length_axis == len(state.shape) - 3 else state.shape[-3]


def _cached(
    state: Feature,
    reads: int,
    writes: list[Operation],
    producers: Mapping[str, Operation],
    mask_lengths: set[int],
) -> CachedState:
    shape = state.type.shape
    axis = next((a for a in (_moving_axis(op, producers) for op in writes) if a is not None), None)
    if axis is None or axis >= len(shape):
        axis = next((a for a, length in enumerate(shape) if length in mask_lengths), None)
    return CachedState(
        state.name, state.type.dtype, shape, state.size_bytes, reads, len(writes), axis
    )


def _moving_axis(write: Operation, producers: Mapping[str, Operation]) -> int | None:
    """Return the axis whose start is computed at run time: rows are appended along it."""
    update = producers.get(write.input_name("data") or "")
    if update is None or update.kind != "slice_update":
        return None
    begin = producers.get(update.input_name("begin") or "")
    if begin is None or begin.kind != "concat":
        return None
    axis = 0
    for argument in begin.inputs.get("values", ()):
        source = producers.get(argument) if isinstance(argument, str) else None
        if isinstance(argument, str) and (source is None or source.kind != "const"):
            return axis
        kind = source.outputs[0].type if source else None
        axis += (kind.element_count or 1) if kind else 1
    return None


def _mask_lengths(function: Function) -> set[int]:
    """Return the context lengths that a floating input of rank 4, an attention mask, allows.

    Its last axis is the cache, or the cache and the step's own rows where the host writes them.
    """
    masks = [
        feature.type.shape
        for feature in function.inputs
        if len(feature.type.shape) == 4 and feature.type.dtype.startswith("fp")
    ]
    lengths = {length for *_, rows, last in masks for length in (last, (last or 0) - (rows or 0))}
    return {length for length in lengths if length and length > 1}


def _query_heads(function: Function) -> int | None:
    """Return the query heads of the first attention over all positions of one step."""
    positions = _positions(function)
    for operation in function.block.walk():
        if operation.kind in _ATTENTION and operation.outputs:
            rows = product(operation.outputs[0].type.shape[:-1])
            return rows // positions if positions and rows % positions == 0 else None
    return None


def _positions(function: Function) -> int | None:
    """Return how many tokens one prediction takes: the last axis of the first integer input."""
    for feature in function.inputs:
        if feature.type.dtype == "int32" and feature.type.shape and not feature.is_flexible:
            return feature.type.shape[-1]
    return None
