"""A small model, and packages made wrong on purpose."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.mlpackage.build import coreml
from orchestrator.mlpackage.build.recipe import TINY
from orchestrator.mlpackage.package import read_package

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orchestrator.mlpackage.build.coreml import Mil, MilObject

SMALL = replace(
    TINY, name="small", layers=2, width=64, heads=2, kv_heads=1, head_dim=32, inner=96, vocab=512,
    length=256, chunk=16,
)  # fmt: skip


def require_models() -> Mil:
    """Return coremltools; without it the test is skipped, or fails where that is due."""
    try:
        return coreml.load()
    except coreml.ModelsExtraError as error:
        if os.environ.get("FLEET_REQUIRE_PEERS") == "1":
            pytest.fail(f"{error}; and FLEET_REQUIRE_PEERS=1")
        pytest.skip(str(error))


def copied(package: Path, into: Path) -> Path:
    return shutil.copytree(package, into / package.name)


def flip_weight_bit(package: Path, weight: str) -> None:
    """Change the lowest bit of one stored byte of a weight."""
    read = read_package(package)
    function = read.model.functions[read.model.default_function]
    for operation in function.block.operations:
        if operation.outputs and operation.outputs[0].name == weight:
            value = operation.attributes.get("val") or operation.inputs["indices"][0]
            assert not isinstance(value, str)
            assert value.blob
            record = read.record(value.blob)
            with read.weights[value.blob.file].path.open("r+b") as file:
                file.seek(record.data_offset + record.size_bytes // 2)
                byte = file.read(1)[0]
                file.seek(-1, 1)
                file.write(bytes([byte ^ 1]))
            return
    raise KeyError(weight)


def change_program(mil: Mil, package: Path, change: Callable[[MilObject], None]) -> None:
    """Apply a change to the operations of a package's one function."""
    path = read_package(package).specification_path
    specification = mil.ct.proto.Model_pb2.Model()
    specification.ParseFromString(path.read_bytes())
    (function,) = specification.mlProgram.functions.values()
    change(function.block_specializations[function.opset].operations)
    path.write_bytes(specification.SerializeToString())


def change_metadata(mil: Mil, package: Path, key: str, **fields: object) -> None:
    path = read_package(package).specification_path
    specification = mil.ct.proto.Model_pb2.Model()
    specification.ParseFromString(path.read_bytes())
    entries = specification.description.metadata.userDefined
    entries[key] = json.dumps(json.loads(entries[key]) | fields)
    path.write_bytes(specification.SerializeToString())
