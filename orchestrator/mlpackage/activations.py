"""An estimate of the memory that one prediction needs beside weights and states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.mlpackage.graph import BITS, product

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.mlpackage.graph import Function, NamedType, Operation

# What these make is a constant, or the state itself, not a buffer of its own.
_NO_BUFFER: Final = frozenset({"const", "read_state", "write_state"})
_CONSTEXPR: Final = "constexpr_"


def activation_bytes(function: Function) -> int:
    """Return the most bytes of intermediate tensors that are alive at once.

    Every tensor lives from the operation that makes it to the last that reads it, in the order of
    the program, at its declared size. Updated states are not counted: they are written in place.
    A plan that fuses operations needs less, one that runs blocks in parallel more.
    """
    operations = function.block.operations
    last_use = {name: place for place, op in enumerate(operations) for name in _read(op)}
    for name in function.block.outputs:
        last_use[name] = len(operations)
    state_shapes = {state.type.shape for state in function.states}
    alive_bytes = peak_bytes = 0
    freed_at: dict[int, int] = {}
    for place, operation in enumerate(operations):
        for output in operation.outputs:
            if _has_buffer(operation, output, state_shapes):
                size_bytes = product(output.type.shape) * BITS.get(output.type.dtype, 0) // 8
                alive_bytes += size_bytes
                end = last_use.get(output.name, place)
                freed_at[end] = freed_at.get(end, 0) + size_bytes
        peak_bytes = max(peak_bytes, alive_bytes)
        alive_bytes -= freed_at.pop(place, 0)
    return peak_bytes


def _read(operation: Operation) -> Iterator[str]:
    for arguments in operation.inputs.values():
        yield from (argument for argument in arguments if isinstance(argument, str))
    for block in operation.blocks:
        for nested in block.walk():
            yield from _read(nested)


def _has_buffer(
    operation: Operation, output: NamedType, state_shapes: set[tuple[int | None, ...]]
) -> bool:
    if operation.kind in _NO_BUFFER or operation.kind.startswith(_CONSTEXPR):
        return False
    return not (operation.kind == "slice_update" and output.type.shape in state_shapes)
