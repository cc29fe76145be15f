"""Decodes the program of a model specification (MIL.proto) into the typed graph.

Source: github.com/apple/coremltools mlmodel/format/MIL.proto (field numbers)
"""

from __future__ import annotations

from typing import Final

from orchestrator.mlpackage.errors import FormatError
from orchestrator.mlpackage.graph import (
    Argument,
    BlobRef,
    Block,
    Function,
    NamedType,
    Operation,
    TensorType,
    Value,
)
from orchestrator.mlpackage.protobuf import (
    RANK_LIMIT,
    Message,
    WireReader,
    as_bytes,
    as_int,
    as_text,
)

_DTYPES: Final = {
    0: "unused",
    1: "bool",
    2: "string",
    10: "fp16",
    11: "fp32",
    12: "fp64",
    13: "bf16",
    21: "int8",
    22: "int16",
    23: "int32",
    24: "int64",
    25: "int4",
    31: "uint8",
    32: "uint16",
    33: "uint32",
    34: "uint64",
    35: "uint4",
    36: "uint2",
    37: "uint1",
    38: "uint6",
    39: "uint3",
    40: "fp8e4m3fn",
    41: "fp8e5m2",
}
# Blocks lie in blocks for loops and conditions; types lie in types for lists and states.
_DEPTH_LIMIT: Final = 16
_OPERATION_LIMIT: Final = 200_000  # a package of 1.1 B parameters with two functions has 3,500
_UNTYPED: Final = TensorType("unused")
_MODEL_PATH: Final = "@model_path/"


class ProgramDecoder:
    """Decodes one program; all of it counts against the reader's one limit of fields."""

    def __init__(self, wire: WireReader) -> None:
        self._wire = wire
        self._operations_left = _OPERATION_LIMIT

    def functions(self, program: Message) -> dict[str, Function]:
        """Return the functions of a `Program` by name, without their descriptions.

        Raises:
            FormatError: If the bytes are not a program.
        """
        functions: dict[str, Function] = {}
        for number, value in self._wire.fields(program):
            if number == 2:
                name, body = self._entry(value)
                functions[name] = self._function(name, body)
        return functions

    def _entry(self, value: int | Message) -> tuple[str, Message]:
        """Return key and value of a map's entry."""
        key = ""
        content: Message = b""
        for number, part in self._wire.fields(as_bytes(value)):
            if number == 1:
                key = as_text(part)
            elif number == 2:
                content = as_bytes(part)
        return key, content

    def _function(self, name: str, message: Message) -> Function:
        opset = ""
        parameters: list[NamedType] = []
        bodies: dict[str, Message] = {}
        for number, value in self._wire.fields(message):
            if number == 1:
                parameters.append(self._named_type(as_bytes(value)))
            elif number == 2:
                opset = as_text(value)
            elif number == 3:
                key, body = self._entry(value)
                bodies[key] = body
        if not bodies:
            raise FormatError(f"the function {name!r} has no block")
        # One specialization per opset; the function's own opset says which one is meant.
        body = bodies.get(opset, next(iter(bodies.values())))
        return Function(name, opset, tuple(parameters), self._block(body, 0))

    def _block(self, message: Message, depth: int) -> Block:
        if depth > _DEPTH_LIMIT:
            raise FormatError("blocks are nested deeper than any model does")
        inputs: list[NamedType] = []
        outputs: list[str] = []
        operations: list[Operation] = []
        for number, value in self._wire.fields(message):
            if number == 3:
                operations.append(self._operation(as_bytes(value), depth))
            elif number == 2:
                outputs.append(as_text(value))
            elif number == 1:
                inputs.append(self._named_type(as_bytes(value)))
        return Block(tuple(inputs), tuple(outputs), tuple(operations))

    def _operation(self, message: Message, depth: int) -> Operation:
        self._operations_left -= 1
        if self._operations_left < 0:
            raise FormatError("more operations than any model has")
        kind = ""
        inputs: dict[str, tuple[Argument, ...]] = {}
        outputs: list[NamedType] = []
        attributes: dict[str, Value] = {}
        blocks: list[Block] = []
        for number, value in self._wire.fields(message):
            if number == 1:
                kind = as_text(value)
            elif number == 2:
                name, content = self._entry(value)
                inputs[name] = self._arguments(content)
            elif number == 3:
                outputs.append(self._named_type(as_bytes(value)))
            elif number == 4:
                blocks.append(self._block(as_bytes(value), depth + 1))
            elif number == 5:
                name, content = self._entry(value)
                attributes[name] = self._value(content)
        return Operation(kind, inputs, tuple(outputs), attributes, tuple(blocks))

    def _arguments(self, message: Message) -> tuple[Argument, ...]:
        arguments: list[Argument] = []
        for number, binding in self._wire.fields(message):
            if number != 1:
                continue
            for choice, value in self._wire.fields(as_bytes(binding)):
                if choice == 1:
                    arguments.append(as_text(value))
                elif choice == 2:
                    arguments.append(self._value(as_bytes(value)))
        return tuple(arguments)

    def _value(self, message: Message) -> Value:
        kind, blob, immediate = _UNTYPED, None, b""
        for number, value in self._wire.fields(message):
            if number == 2:
                kind, _ = self._value_type(as_bytes(value), 0)
            elif number == 3:
                immediate = bytes(as_bytes(value))
            elif number == 5:
                blob = self._blob(as_bytes(value))
        return Value(kind, blob, immediate)

    def _blob(self, message: Message) -> BlobRef:
        file, offset = "", 0
        for number, value in self._wire.fields(message):
            if number == 1:
                file = as_text(value).removeprefix(_MODEL_PATH)
            elif number == 2:
                offset = as_int(value)
        return BlobRef(file, offset)

    def _named_type(self, message: Message) -> NamedType:
        name, kind, is_state = "", _UNTYPED, False
        for number, value in self._wire.fields(message):
            if number == 1:
                name = as_text(value)
            elif number == 2:
                kind, is_state = self._value_type(as_bytes(value), 0)
        return NamedType(name, kind, is_state)

    def _value_type(self, message: Message, depth: int) -> tuple[TensorType, bool]:
        """Return the tensor type and whether it is a state; lists and tuples have none."""
        if depth > _DEPTH_LIMIT:
            raise FormatError("types are nested deeper than any model does")
        for number, value in self._wire.fields(message):
            if number == 1:
                return self._tensor_type(as_bytes(value)), False
            if number == 5:
                for choice, wrapped in self._wire.fields(as_bytes(value)):
                    if choice == 1:
                        return self._value_type(as_bytes(wrapped), depth + 1)[0], True
        return _UNTYPED, False

    def _tensor_type(self, message: Message) -> TensorType:
        dtype = "unused"
        shape: list[int | None] = []
        for number, value in self._wire.fields(message):
            if number == 1:
                code = as_int(value)
                dtype = _DTYPES.get(code, f"type {code}")
            elif number == 3:
                shape.append(self._dimension(as_bytes(value)))
        if len(shape) > RANK_LIMIT:
            raise FormatError(f"a tensor of {len(shape)} axes")
        return TensorType(dtype, tuple(shape))

    def _dimension(self, message: Message) -> int | None:
        for number, value in self._wire.fields(message):
            if number == 1:
                # proto3 leaves a zero out, so an empty message is a length of 0.
                sizes = [
                    as_int(size)
                    for choice, size in self._wire.fields(as_bytes(value))
                    if choice == 1
                ]
                return sizes[-1] if sizes else 0
        return None
