"""Small decoders as packages of a few kilobytes, with one thing at a time made wrong."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.mlpackage import encode
from tests.mlpackage.encode import entry, message, named, operation, tensor_type

if TYPE_CHECKING:
    from pathlib import Path

VOCAB, HIDDEN, INNER, LENGTH, HEAD_DIM, KV_HEADS = 96, 32, 64, 64, 32, 2
STORED_DTYPES = {"fp16": 1, "int8": 4, "int4": 8, "uint4": 11}
BITS = {"fp16": 16, "int8": 8, "int4": 4, "uint4": 4}
IOS18 = 9


@dataclass(frozen=True)
class State:
    name: str
    shape: tuple[int, ...] = (1, KV_HEADS, LENGTH, HEAD_DIM)
    dtype: str = "fp16"


PAIR = (State("k_cache"), State("v_cache"))


@dataclass(frozen=True)
class Input:
    name: str
    dtype: str
    shape: tuple[int, ...]
    enumerated: tuple[tuple[int, ...], ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Decoder:
    """One function; encodings are `dense`, `lut4`, `int8`, `int4`."""

    width: int = 1
    states: tuple[State, ...] = PAIR
    written: bool = True
    embedding: str | None = "dense"
    table: str = "dense"
    inner: tuple[str, ...] = ("lut4", "lut4")
    output: str | None = "dense"
    lut_groups: tuple[int, int] = (2, 1)
    output_is_written: bool = False
    fused_attention: bool = False
    opset: str = "CoreML8"
    tokens: Input | None = None
    mask: Input | None = None
    undeclared: tuple[str, ...] = ()

    def inputs(self) -> tuple[Input, ...]:
        return (
            self.tokens or Input("input_ids", "int32", (1, self.width)),
            Input("position_ids", "int32", (self.width,)),
            self.mask or Input("causal_mask", "fp16", (1, 1, self.width, LENGTH)),
        )


@dataclass
class Weights:
    """A weight file in the making; equal names share one tensor."""

    offsets: dict[str, int] = field(default_factory=dict)
    content: bytearray = field(default_factory=lambda: bytearray(64))
    claimed_bytes: int | None = None  # of one tensor at the end that is only claimed, sparse

    def add(self, name: str, dtype: str, size_bytes: int) -> int:
        if name not in self.offsets:
            offset = len(self.content)
            record = (0xDEADBEEF, STORED_DTYPES[dtype], size_bytes, offset + 64, 0)
            data = (struct.pack("<IIQQQ", *record).ljust(64, b"\0")) + bytes(size_bytes)
            self.content += data + bytes(-len(data) % 64)
            self.offsets[name] = offset
        return self.offsets[name]

    def write(self, path: Path) -> None:
        self.content[:8] = struct.pack("<II", len(self.offsets), 2)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.content)


class _Writer:
    """The operations of one function."""

    def __init__(self, decoder: Decoder, weights: Weights) -> None:
        self.decoder, self.weights = decoder, weights
        self.operations: list[bytes] = []

    def add(
        self,
        kind: str,
        inputs: dict[str, str | bytes | tuple[str, ...]],
        name: str | None = None,
        shape: tuple[int, ...] = (),
        dtype: str = "fp16",
        attributes: dict[str, bytes] | None = None,
    ) -> str:
        outputs = (named(name, tensor_type(dtype, shape)),) if name else ()
        self.operations.append(operation(kind, inputs, outputs, attributes))
        return name or ""

    def stored(self, name: str, dtype: str, shape: tuple[int, ...]) -> bytes:
        size_bytes = (BITS[dtype] * _count(shape) + 7) // 8
        offset = self.weights.add(f"{name}:{dtype}:{shape}", dtype, size_bytes)
        return encode.blob_value(dtype, shape, "@model_path/weights/weight.bin", offset)

    def weight(self, name: str, shape: tuple[int, ...], encoding: str) -> str:
        if encoding == "dense":
            value = self.stored(name, "fp16", shape)
            return self.add("const", {}, name, shape, attributes={"val": value})
        if encoding == "lut4":
            groups = (*self.decoder.lut_groups, 16, 1)
            parts = {
                "indices": self.stored(f"{name}_indices", "uint4", shape),
                "lut": self.stored(f"{name}_lut", "fp16", groups),
            }
            return self.add("constexpr_lut_to_dense", {**parts}, name, shape)
        parts = {
            "data": self.stored(f"{name}_data", encoding, shape),
            "scale": self.stored(f"{name}_scale", "fp16", (shape[0], 1)),
        }
        return self.add("constexpr_blockwise_shift_scale", {**parts}, name, shape)

    def const_ints(self, name: str, *numbers: int) -> str:
        value = encode.ints_value(numbers)
        return self.add("const", {}, name, (len(numbers),), "int32", {"val": value})

    def whole(self) -> list[bytes]:
        width = self.decoder.width
        if self.decoder.embedding:
            table = self.weight("embed", (VOCAB, HIDDEN), self.decoder.embedding)
            ids = self.decoder.inputs()[0].name
            self.add("gather", {"x": table, "indices": ids}, "x0", (1, width, HIDDEN))
        rope = self.weight("rope_cos", (LENGTH, HEAD_DIM // 2), self.decoder.table)
        self.add("gather", {"x": rope, "indices": "position_ids"}, "cos", (width, HEAD_DIM // 2))
        for place, state in enumerate(self.decoder.states):
            self.state(place, state)
        self.attention(width)
        self.layers(width)
        return self.operations

    def state(self, place: int, state: State) -> None:
        held = self.add("read_state", {"input": state.name}, f"old{place}", state.shape)
        if not self.decoder.written:
            return
        edge = [self.const_ints(f"edge{place}_{axis}", 0) for axis in (0, 1, 3)]
        values = (edge[0], edge[1], "position_ids", edge[2])
        begin = self.add("concat", {"values": values}, f"begin{place}", (4,), "int32")
        name = "logits" if self.decoder.output_is_written and place == 0 else f"new{place}"
        self.add("slice_update", {"x": held, "begin": begin}, name, state.shape)
        self.add("write_state", {"input": state.name, "data": name})

    def attention(self, width: int) -> None:
        if self.decoder.fused_attention:
            shape = (1, KV_HEADS, 2 * width, HEAD_DIM)
            self.add("scaled_dot_product_attention", {"query": "x0"}, "sdpa", shape)
        else:
            self.add("softmax", {"x": "x0"}, "probs", (1, KV_HEADS, 2 * width, LENGTH))

    def layers(self, width: int) -> None:
        shapes = ((HIDDEN, HIDDEN), (HIDDEN, HIDDEN))
        for place, encoding in enumerate(self.decoder.inner):
            weight = self.weight(f"layer{place}", shapes[place % 2], encoding)
            self.add("linear", {"x": "x0", "weight": weight}, f"y{place}", (1, width, HIDDEN))
        if self.decoder.output:
            head = self.weight("lm_head", (VOCAB, HIDDEN), self.decoder.output)
            self.add("linear", {"x": "y0", "weight": head}, "logits", (1, 1, VOCAB))


def write_package(
    path: Path,
    functions: dict[str, Decoder] | None = None,
    *,
    spec_version: int = IOS18,
    metadata: dict[str, str] | None = None,
    weights: Weights | None = None,
) -> Path:
    """Write a package; by default one function that breaks no rule."""
    functions = functions or {"main": Decoder(inner=("int8", "int8"))}
    weights = weights or Weights()
    specification = specification_of(functions, weights, spec_version, metadata or {})
    data = path / "Data" / "com.apple.CoreML"
    data.mkdir(parents=True)
    (data / "model.mlmodel").write_bytes(specification)
    weights.write(data / "weights" / "weight.bin")
    items = {
        "A1": {"path": "com.apple.CoreML/model.mlmodel", "author": "com.apple.CoreML"},
        "B2": {"path": "com.apple.CoreML/weights", "author": "com.apple.CoreML"},
    }
    manifest = {"fileFormatVersion": "1.0.0", "itemInfoEntries": items, "rootModelIdentifier": "A1"}
    (path / "Manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return path


def specification_of(
    functions: dict[str, Decoder], weights: Weights, spec_version: int, metadata: dict[str, str]
) -> bytes:
    bodies = [(2, entry(name, _function(each, weights))) for name, each in functions.items()]
    program = message((1, 1), *bodies)
    if len(functions) == 1:
        described = _features(next(iter(functions.values())), (1, 10, 13))
    else:
        described = [
            (20, message((1, name), *_features(each, (2, 3, 6))))
            for name, each in functions.items()
        ]
        described.append((21, next(iter(functions)).encode()))
    user_defined = [(100, entry(key, text.encode())) for key, text in (metadata or {}).items()]
    description = message(*described, (100, message(*user_defined)))
    return message((1, spec_version), (2, description), (502, program))


def _function(decoder: Decoder, weights: Weights) -> bytes:
    parameters = [
        named(i.name, tensor_type(i.dtype, i.shape))
        for i in decoder.inputs()
        if i.name not in decoder.undeclared
    ] + [named(s.name, encode.state_type(s.dtype, s.shape)) for s in decoder.states]
    operations = [(3, each) for each in _Writer(decoder, weights).whole()]
    block = message((2, "logits"), *operations)
    return message(
        *((1, each) for each in parameters), (2, decoder.opset), (3, entry(decoder.opset, block))
    )


def _features(decoder: Decoder, numbers: tuple[int, int, int]) -> list[tuple[int, bytes]]:
    inputs, outputs, states = numbers
    arrays = [
        (
            inputs,
            encode.feature(i.name, encode.array_type(i.dtype, i.shape, i.enumerated, i.ranges)),
        )
        for i in decoder.inputs()
    ]
    logits = encode.feature("logits", encode.array_type("fp16", (1, 1, VOCAB)))
    held = [
        (states, encode.state_feature(s.name, encode.array_type(s.dtype, s.shape)))
        for s in decoder.states
    ]
    return [*arrays, (outputs, logits), *held]


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count
