"""Decodes a model specification (Model.proto): description, metadata and the program in it.

Source: github.com/apple/coremltools mlmodel/format/Model.proto and FeatureTypes.proto
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from orchestrator.mlpackage.errors import FormatError
from orchestrator.mlpackage.graph import Feature, Function, Model, TensorType
from orchestrator.mlpackage.program import ProgramDecoder
from orchestrator.mlpackage.protobuf import (
    Message,
    WireReader,
    as_bytes,
    as_int,
    as_text,
    shape_of,
    signed,
)

_ML_PROGRAM: Final = 502
_OTHER_KINDS: Final = {
    200: "a pipeline",
    201: "a pipeline",
    202: "a pipeline",
    303: "a neural network",
    403: "a neural network",
    500: "a neural network",
}
_KIND_FIELDS: Final = range(200, 4000)
_ARRAY_DTYPES: Final = {
    65568: "fp32",
    65600: "fp64",
    131104: "int32",
    131080: "int8",
    65552: "fp16",
}


@dataclass(slots=True)
class _Features:
    """Declared features of one function, while they are collected."""

    inputs: list[Feature] = field(default_factory=list)
    outputs: list[Feature] = field(default_factory=list)
    states: list[Feature] = field(default_factory=list)

    def applied_to(self, function: Function) -> Function:
        return replace(
            function,
            inputs=tuple(self.inputs),
            outputs=tuple(self.outputs),
            states=tuple(self.states),
        )


def decode_model(specification: bytes) -> Model:
    """Return the model of a specification.

    Raises:
        FormatError: If the bytes are no specification, or it holds no ML program.
    """
    wire = WireReader()
    spec_version, program = 0, None
    description: Message = b""
    for number, value in wire.fields(memoryview(specification)):
        if number == 1:
            spec_version = as_int(value)
        elif number == 2:
            description = as_bytes(value)
        elif number == _ML_PROGRAM:
            program = as_bytes(value)
        elif number in _KIND_FIELDS:
            kind = _OTHER_KINDS.get(number, f"a model of kind {number}")
            raise FormatError(f"{kind}, not an ML program")
    if program is None:
        raise FormatError("no ML program in it")
    functions = ProgramDecoder(wire).functions(program)
    if not functions:
        raise FormatError("the ML program has no function")
    return _DescriptionDecoder(wire).described(spec_version, description, functions)


class _DescriptionDecoder:
    def __init__(self, wire: WireReader) -> None:
        self._wire = wire
        self._own = _Features()
        self._by_function: dict[str, _Features] = {}
        self._metadata: dict[str, str] = {}
        self._default = ""

    def described(
        self, spec_version: int, description: Message, functions: dict[str, Function]
    ) -> Model:
        for number, value in self._wire.fields(description):
            if number == 20:
                self._function(as_bytes(value))
            elif number == 21:
                self._default = as_text(value)
            elif number == 100:
                self._read_metadata(as_bytes(value))
            else:
                self._feature_into(
                    self._own, {1: "inputs", 10: "outputs", 13: "states"}, number, value
                )
        default = self._default or next(iter(functions))
        # A model with one function describes it at the top and names no function.
        declared = self._by_function or {default: self._own}
        for name, features in declared.items():
            if name in functions:
                functions[name] = features.applied_to(functions[name])
        # Maps have no order on the wire: two writers of one model must read the same.
        return Model(spec_version, dict(sorted(functions.items())), default, self._metadata)

    def _function(self, message: Message) -> None:
        name, features = "", _Features()
        for number, value in self._wire.fields(message):
            if number == 1:
                name = as_text(value)
            else:
                self._feature_into(
                    features, {2: "inputs", 3: "outputs", 6: "states"}, number, value
                )
        self._by_function[name] = features

    def _feature_into(
        self, features: _Features, lists: dict[int, str], number: int, value: int | Message
    ) -> None:
        if number in lists:
            getattr(features, lists[number]).append(self._feature(as_bytes(value)))

    def _feature(self, message: Message) -> Feature:
        name, kind = "", "other"
        array: Message = b""
        for number, value in self._wire.fields(message):
            if number == 1:
                name = as_text(value)
            elif number == 3:
                kind, array = self._feature_type(as_bytes(value))
        return self._array(name, kind, array)

    def _feature_type(self, message: Message) -> tuple[str, Message]:
        """Return the kind and the `ArrayFeatureType` message within."""
        for number, value in self._wire.fields(message):
            if number == 5:
                return "array", as_bytes(value)
            if number == 8:
                for choice, array in self._wire.fields(as_bytes(value)):
                    if choice == 1:
                        return "state", as_bytes(array)
        return "other", b""

    def _array(self, name: str, kind: str, message: Message) -> Feature:
        shape: list[int] = []
        dtype = "unused"
        enumerated: list[tuple[int, ...]] = []
        ranges: list[tuple[int, int | None]] = []
        for number, value in self._wire.fields(message):
            if number == 1:
                shape += self._wire.signed_numbers(value)
            elif number == 2:
                code = as_int(value)
                dtype = _ARRAY_DTYPES.get(code, f"type {code}")
            elif number == 21:
                enumerated += [self._shape(item) for item in self._ones(as_bytes(value))]
            elif number == 31:
                ranges += [self._range(item) for item in self._ones(as_bytes(value))]
        return Feature(
            name, kind, TensorType(dtype, shape_of(shape)), tuple(enumerated), tuple(ranges)
        )

    def _ones(self, message: Message) -> list[Message]:
        """Return the messages in field 1."""
        return [as_bytes(value) for number, value in self._wire.fields(message) if number == 1]

    def _shape(self, message: Message) -> tuple[int, ...]:
        shape: list[int] = []
        for number, value in self._wire.fields(message):
            if number == 1:
                shape += self._wire.signed_numbers(value)
        return shape_of(shape)

    def _range(self, message: Message) -> tuple[int, int | None]:
        least, most = 0, -1
        for number, value in self._wire.fields(message):
            if number == 1:
                least = as_int(value)
            elif number == 2:
                most = signed(as_int(value))
        return least, None if most < 0 else most

    def _read_metadata(self, message: Message) -> None:
        for number, value in self._wire.fields(message):
            if number == 100:
                entry = dict(self._wire.fields(as_bytes(value)))
                self._metadata[as_text(entry.get(1, b""))] = as_text(entry.get(2, b""))
