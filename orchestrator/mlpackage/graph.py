"""An ML program as typed values: functions, operations, tensors and where their bytes lie."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Bits of one element. The names are MIL's own.
BITS: Final[Mapping[str, int]] = {
    "bool": 8,
    "string": 0,
    "fp16": 16,
    "fp32": 32,
    "fp64": 64,
    "bf16": 16,
    "int8": 8,
    "int16": 16,
    "int32": 32,
    "int64": 64,
    "int4": 4,
    "uint8": 8,
    "uint16": 16,
    "uint32": 32,
    "uint64": 64,
    "uint4": 4,
    "uint2": 2,
    "uint1": 1,
    "uint6": 6,
    "uint3": 3,
    "fp8e4m3fn": 8,
    "fp8e5m2": 8,
}


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type and shape; an axis whose length is only known at run time is None."""

    dtype: str
    shape: tuple[int | None, ...] = ()

    @property
    def element_count(self) -> int | None:
        """Elements, or None where an axis is only known at run time."""
        count = 1
        for length in self.shape:
            if length is None:
                return None
            count *= length
        return count

    @property
    def size_bytes(self) -> int | None:
        """Bytes of the packed elements, or None where the count is not known."""
        count = self.element_count
        return None if count is None else (count * BITS.get(self.dtype, 0) + 7) // 8


@dataclass(frozen=True, slots=True)
class BlobRef:
    """Where a tensor's bytes lie: a file below the model's folder, and its record's offset."""

    file: str  # "weights/weight.bin"
    offset: int  # of the 64-byte record, not of the data


@dataclass(frozen=True, slots=True)
class Value:
    """A constant: its bytes lie in a weight file, or here as an undecoded `ImmediateValue`."""

    type: TensorType
    blob: BlobRef | None = None
    immediate: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class NamedType:
    """A named tensor or state of the graph."""

    name: str
    type: TensorType
    is_state: bool = False


# An argument is the name of a tensor, or a constant in place.
Argument = str | Value


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. Constants are operations of the kind `const` with the attribute `val`."""

    kind: str
    inputs: Mapping[str, tuple[Argument, ...]]
    outputs: tuple[NamedType, ...]
    attributes: Mapping[str, Value]
    blocks: tuple[Block, ...] = ()

    def input_name(self, parameter: str) -> str | None:
        """Return the tensor that a parameter is bound to, None where it is absent or constant."""
        for argument in self.inputs.get(parameter, ()):
            return argument if isinstance(argument, str) else None
        return None


@dataclass(frozen=True, slots=True)
class Block:
    """Operations in the order in which they run."""

    inputs: tuple[NamedType, ...]
    outputs: tuple[str, ...]
    operations: tuple[Operation, ...]

    def walk(self) -> Iterator[Operation]:
        """Yield every operation, those of nested blocks after the one that holds them."""
        for operation in self.operations:
            yield operation
            for block in operation.blocks:
                yield from block.walk()


@dataclass(frozen=True, slots=True)
class Feature:
    """An input, output or state as the model's description declares it to the app."""

    name: str
    kind: str  # "array", "state", or "other" for images, dictionaries, ...
    type: TensorType
    enumerated: tuple[tuple[int, ...], ...] = ()  # shapes that are allowed, default first
    ranges: tuple[tuple[int, int | None], ...] = ()  # per axis: least, most (None: no bound)

    @property
    def size_bytes(self) -> int:
        """Bytes at the default shape."""
        return self.type.size_bytes or 0

    @property
    def is_flexible(self) -> bool:
        """Whether the app may choose between shapes."""
        return bool(self.enumerated) or any(least != most for least, most in self.ranges)


@dataclass(frozen=True, slots=True)
class Function:
    """One function of a program, with its description."""

    name: str
    opset: str  # "CoreML8" is iOS 18
    parameters: tuple[NamedType, ...]  # as the program declares them, states included
    block: Block
    inputs: tuple[Feature, ...] = ()
    outputs: tuple[Feature, ...] = ()
    states: tuple[Feature, ...] = ()

    @property
    def state_bytes(self) -> int:
        """Bytes of all states at their full size."""
        return sum(state.size_bytes for state in self.states)


@dataclass(frozen=True, slots=True)
class Model:
    """A model specification that holds an ML program."""

    spec_version: int
    functions: Mapping[str, Function]
    default_function: str
    metadata: Mapping[str, str]  # user defined, plus the converter's own keys


def produced_by(block: Block) -> dict[str, Operation]:
    """Return the operation that makes each tensor of a block and of its nested blocks."""
    return {output.name: operation for operation in block.walk() for output in operation.outputs}


def product(shape: tuple[int | None, ...]) -> int:
    """Return the elements of a shape; an unknown axis counts as one."""
    return math.prod(length or 1 for length in shape)
