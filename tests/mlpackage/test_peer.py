"""The reader against coremltools' own protobuf classes and weight reader, on the same packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.mlpackage.build.kit import build_kit
from orchestrator.mlpackage.build.recipe import TINY, Layout
from orchestrator.mlpackage.immediate import literal
from orchestrator.mlpackage.lint.rule import Level
from orchestrator.mlpackage.lint.run import lint
from orchestrator.mlpackage.package import constants, find_packages, read_package
from tests.mlpackage.small import Decoder, Input, write_package

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from orchestrator.mlpackage.build.coreml import Mil
    from orchestrator.mlpackage.build.kit import Kit
    from orchestrator.mlpackage.graph import Block, Value
    from orchestrator.mlpackage.package import Package


@pytest.fixture
def packages(
    mil: Mil, tiny_kit: Kit, witness_kit: Kit, tmp_path: Path
) -> list[tuple[Package, Any]]:
    """Packages as our reader and as coremltools' classes have them."""
    from coremltools.proto import Model_pb2

    small = {
        "decode": Decoder(tokens=Input("ids", "int32", (1, 1), ((1, 1), (1, 8)))),
        "prefill": Decoder(width=8, mask=Input("m", "fp16", (1, 8), ranges=((1, 1), (1, -1)))),
    }
    paths = [write_package(tmp_path / "small.mlpackage", small, metadata={"key": "text"})]
    paths += sorted([*tiny_kit.folder.glob("*.mlpackage"), *witness_kit.folder.glob("*.mlpackage")])
    pairs = []
    for path in paths:
        package = read_package(path)
        theirs = Model_pb2.Model()
        theirs.ParseFromString(package.specification_path.read_bytes())
        pairs.append((package, theirs))
    assert len(pairs) == 5
    return pairs


def their_block(function: Any) -> Any:  # noqa: ANN401 - a generated message
    return function.block_specializations[function.opset]


def test_operations_arguments_and_outputs_agree(packages: list[tuple[Package, Any]]) -> None:
    for ours, theirs in packages:
        assert set(ours.model.functions) == set(theirs.mlProgram.functions)
        for name, function in ours.model.functions.items():
            expected = their_block(theirs.mlProgram.functions[name])
            assert list(our_operations(function.block)) == list(their_operations(expected))
            assert function.block.outputs == tuple(expected.outputs)


def our_operations(block: Block) -> Iterator[tuple[object, ...]]:
    for operation in block.operations:
        names = {
            key: [argument if isinstance(argument, str) else None for argument in arguments]
            for key, arguments in operation.inputs.items()
        }
        shapes = [(output.name, output.type.shape) for output in operation.outputs]
        yield operation.kind, names, shapes, sorted(operation.attributes)


def their_operations(block: Any) -> Iterator[tuple[object, ...]]:  # noqa: ANN401
    for operation in block.operations:
        names = {
            key: [b.name if b.HasField("name") else None for b in argument.arguments]
            for key, argument in operation.inputs.items()
        }
        shapes = [
            (o.name, tuple(d.constant.size for d in o.type.tensorType.dimensions))
            for o in operation.outputs
        ]
        yield operation.type, names, shapes, sorted(operation.attributes)


def test_features_and_metadata_agree(packages: list[tuple[Package, Any]]) -> None:
    for ours, theirs in packages:
        described = theirs.description
        assert ours.model.spec_version == theirs.specificationVersion
        assert dict(ours.model.metadata) == dict(described.metadata.userDefined)
        for name, function in ours.model.functions.items():
            own = next((f for f in described.functions if f.name == name), described)
            for mine, other in ((function.inputs, own.input), (function.states, own.state)):
                assert [each.name for each in mine] == [each.name for each in other]
            for mine_input, other_input in zip(function.inputs, own.input, strict=True):
                array = other_input.type.multiArrayType
                assert mine_input.type.shape == tuple(array.shape)
                choices = array.enumeratedShapes.shapes
                assert mine_input.enumerated == tuple(tuple(c.shape) for c in choices)
                bounds = [(r.lowerBound, r.upperBound) for r in array.shapeRange.sizeRanges]
                assert [(low, -1 if high is None else high) for low, high in mine_input.ranges] == (
                    bounds
                )


def test_constants_in_the_program_agree(packages: list[tuple[Package, Any]]) -> None:
    for ours, theirs in packages:
        for name, function in ours.model.functions.items():
            block = their_block(theirs.mlProgram.functions[name])
            for mine, other in zip(function.block.operations, block.operations, strict=True):
                for key, value in mine.attributes.items():
                    if value.blob is None:
                        assert plain(value) == their_plain(other.attributes[key])


def plain(value: Value) -> object:
    elements = literal(value)
    return elements if isinstance(elements, bytes) else [float_or(e) for e in elements]


def their_plain(value: Any) -> object:  # noqa: ANN401
    tensor = value.immediateValue.tensor
    kind = tensor.WhichOneof("value")
    if kind is None:
        return []
    values = getattr(tensor, kind).values
    return bytes(values) if kind == "bytes" else [float_or(each) for each in values]


def float_or(value: object) -> object:
    return float(value) if isinstance(value, (int, float)) else value


def test_the_bytes_of_weights_agree(packages: list[tuple[Package, Any]]) -> None:
    from coremltools.libmilstoragepython import _BlobStorageReader

    checked = 0
    for ours, _ in packages:
        for _, value in constants(ours.model):
            if value.blob is None or value.type.dtype not in ("fp16", "int8"):
                continue
            reader = _BlobStorageReader(str(ours.weights[value.blob.file].path))
            read = reader.read_fp16_data if value.type.dtype == "fp16" else reader.read_int8_data
            theirs = read(value.blob.offset)
            assert ours.read(value.blob) == theirs.tobytes()
            checked += 1
    assert checked > 50


@pytest.mark.parametrize("layout", list(Layout))
def test_our_own_kits_lint_without_an_error(layout: Layout, mil: Mil, tmp_path: Path) -> None:
    kit = build_kit(mil, TINY, layout, tmp_path)
    found = lint([read_package(path) for path in find_packages(kit.folder)])
    assert [finding for finding in found if finding.level is Level.ERROR] == []


def test_our_own_witness_lints_without_an_error(witness_kit: Kit) -> None:
    found = lint([read_package(path) for path in find_packages(witness_kit.folder)])
    assert [finding for finding in found if finding.level is Level.ERROR] == []
