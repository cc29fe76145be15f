"""A compressed package is smaller, still verified, and says what it lost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.mlpackage.build.recipe import Layout, Weights
from orchestrator.mlpackage.compress.plan import Keep
from orchestrator.mlpackage.compress.run import compress
from orchestrator.mlpackage.digest import folder_digest
from orchestrator.mlpackage.package import read_package
from orchestrator.mlpackage.verify.report import VerifyReport
from orchestrator.mlpackage.verify.run import verify
from tests.mlpackage.making import SMALL, change_program, copied

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.mlpackage.build.coreml import Mil, MilObject
    from tests.mlpackage.conftest import Kits

FP16 = replace(SMALL, weights=Weights.FP16)
ALL = frozenset(Keep)


@pytest.mark.parametrize(
    ("weights", "least", "most"),
    [(Weights.LUT4, 0.05, 0.12), (Weights.INT8, 0.003, 0.01), (Weights.INT4, 0.05, 0.12)],
)
def test_a_package_is_compressed_and_says_what_it_lost(
    mil: Mil, kits: Kits, tmp_path: Path, weights: Weights, least: float, most: float
) -> None:
    source = kits(FP16).packages[0].path
    before = folder_digest(source)
    done = compress(mil, source, weights, ALL, tmp_path / "out.mlpackage")
    assert folder_digest(source) == before
    assert done.bytes_after < done.bytes_before
    assert least < done.error <= done.worst_error < most
    assert done.outputs is not None
    assert done.outputs.max_error_after > done.outputs.max_error_before
    report = verify(done.package)
    assert isinstance(report, VerifyReport)
    assert report.findings == ()
    assert report.compressed


def test_functions_are_compressed_one_by_one_and_share_weights_again(
    mil: Mil, kits: Kits, tmp_path: Path
) -> None:
    source = kits(FP16, Layout.MULTIFUNCTION).packages[0].path
    done = compress(mil, source, Weights.LUT4, ALL, tmp_path / "out.mlpackage")
    model = read_package(done.package).model
    assert set(model.functions) == {"decode", "prefill"}
    assert model.default_function == "decode"
    shared = read_package(done.package).weights["weights/weight.bin"].size_bytes
    alone = kits(SMALL).packages[0].path  # the same palettes and indices, made by the builder
    assert shared < 1.1 * read_package(alone).weights["weights/weight.bin"].size_bytes
    assert verify(done.package).findings == ()


def test_equal_input_gives_equal_bytes(mil: Mil, kits: Kits, tmp_path: Path) -> None:
    source = kits(FP16).packages[0].path
    digests = {
        compress(mil, source, Weights.INT8, ALL, tmp_path / f"{n}.mlpackage").digest
        for n in range(2)
    }
    assert len(digests) == 1


def test_a_package_of_a_stranger_is_compressed_without_outputs(
    mil: Mil, kits: Kits, tmp_path: Path
) -> None:
    source = copied(kits(FP16).packages[0].path, tmp_path)
    path = read_package(source).specification_path
    specification = mil.ct.proto.Model_pb2.Model()
    specification.ParseFromString(path.read_bytes())
    specification.description.metadata.userDefined.clear()
    path.write_bytes(specification.SerializeToString())
    done = compress(mil, source, Weights.INT8, ALL, tmp_path / "out.mlpackage")
    assert done.outputs is None
    assert done.compressed == 14


def test_a_wrong_graph_stays_wrong_after_compression(mil: Mil, kits: Kits, tmp_path: Path) -> None:
    def odd(operations: MilObject) -> None:
        next(operation for operation in operations if operation.type == "silu").type = "sigmoid"

    source = copied(kits(FP16).packages[0].path, tmp_path)
    change_program(mil, source, odd)
    done = compress(mil, source, Weights.INT8, ALL, tmp_path / "out.mlpackage")
    assert verify(done.package).findings


@pytest.mark.parametrize("name", ["out", "decode.mlpackage"])
def test_an_output_in_the_wrong_place_is_refused(
    mil: Mil, kits: Kits, tmp_path: Path, name: str
) -> None:
    source = copied(kits(FP16).packages[0].path, tmp_path)
    with pytest.raises(UsageError, match="must be another folder"):
        compress(mil, source, Weights.INT8, ALL, tmp_path / name)
