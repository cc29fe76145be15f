"""Witness packages prove the shared contexts, and a package that stores wrong ids proves none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.mlpackage.build.recipe import Layout
from orchestrator.mlpackage.build.witness import WitnessRecipe, build_witness, digit_table
from orchestrator.mlpackage.verify.errors import VerifyError
from orchestrator.mlpackage.verify.report import WitnessReport
from orchestrator.mlpackage.verify.run import verify
from tests.mlpackage.making import change_program, copied

if TYPE_CHECKING:
    from orchestrator.mlpackage.build.coreml import Mil, MilObject
    from orchestrator.mlpackage.build.kit import Kit

VECTORS = Path(__file__).parents[2] / "vectors" / "witness_vectors.json"


def proven(path: Path, vectors: Path | None = None) -> WitnessReport:
    report = verify(path, vectors)
    assert isinstance(report, WitnessReport)
    return report


def test_the_kit_proves_every_shared_context(witness_kit: Kit) -> None:
    report = proven(witness_kit.folder, VECTORS)
    assert report.findings == ()
    assert report.contexts == report.proven == 24
    assert report.roles == ("decode", "prefill")


def test_a_package_alone_and_a_multifunction_package_prove_as_much(
    mil: Mil, witness_kit: Kit, tmp_path: Path
) -> None:
    assert proven(witness_kit.packages[1].path, VECTORS).proven == 24
    assert proven(witness_kit.packages[0].path).findings == ()
    both = build_witness(mil, WitnessRecipe(), Layout.MULTIFUNCTION, tmp_path)
    assert proven(both.packages[0].path, VECTORS).proven == 24


def test_equal_witnesses_have_equal_bytes(mil: Mil, witness_kit: Kit, tmp_path: Path) -> None:
    again = build_witness(mil, WitnessRecipe(), Layout.SEPARATE, tmp_path)
    assert [package.digest for package in again.packages] == [
        package.digest for package in witness_kit.packages
    ]


def test_a_context_with_another_token_is_not_proven(witness_kit: Kit, tmp_path: Path) -> None:
    cases: list[dict[str, Any]] = json.loads(VECTORS.read_text())[:3]
    cases[1]["token"] += 1
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    report = proven(witness_kit.folder, tmp_path / "cases.json")
    assert (report.contexts, report.proven) == (3, 2)
    assert "context 2 of 3" in report.findings[0]


def test_a_graph_that_writes_one_state_wrongly_is_found(
    mil: Mil, witness_kit: Kit, tmp_path: Path
) -> None:
    def forget_the_inversion(operations: MilObject) -> None:
        next(operation for operation in operations if operation.type == "sub").type = "add"

    package = copied(witness_kit.packages[1].path, tmp_path)
    change_program(mil, package, forget_the_inversion)
    report = proven(package)
    assert report.proven == 0
    assert "k_cache and v_cache hold different ids" in report.findings[0]


def test_digits_are_exact_in_fp16_and_give_the_id_back() -> None:
    table = digit_table(32_768)
    assert table.max() == 15
    assert int(table[31_999, :4].astype(int) @ [1, 16, 256, 4096]) == 31_999


def test_a_witness_whose_states_the_host_writes_is_refused(mil: Mil, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="writes its own states"):
        build_witness(mil, WitnessRecipe(), Layout.HOST_STATE, tmp_path)


@pytest.mark.parametrize("content", ["", "{}", "[]", '[{"context": []}]', '[{"nonce": 1}]'])
def test_vectors_of_another_shape_are_refused(
    witness_kit: Kit, tmp_path: Path, content: str
) -> None:
    (tmp_path / "cases.json").write_text(content)
    with pytest.raises(VerifyError, match=r"cases\.json"):
        verify(witness_kit.folder, tmp_path / "cases.json")


def test_a_context_with_an_id_outside_the_vocabulary_is_refused(
    witness_kit: Kit, tmp_path: Path
) -> None:
    case = json.loads(VECTORS.read_text())[0] | {"context": [40_000]}
    (tmp_path / "cases.json").write_text(json.dumps([case]))
    with pytest.raises(VerifyError, match="does not fit the model"):
        verify(witness_kit.folder, tmp_path / "cases.json")
