"""Saved packages compute what their recipe says, and whatever is wrong with one is found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator.domain.errors import FleetError
from orchestrator.domain.outcome import ExitCode
from orchestrator.mlpackage.build.chunks import Chunk, chunk_bytes
from orchestrator.mlpackage.build.kit import Kit, build_kit
from orchestrator.mlpackage.build.recipe import Attention, Layout, States, Weights
from orchestrator.mlpackage.errors import PackageError
from orchestrator.mlpackage.verify import run as verify_module
from orchestrator.mlpackage.verify.errors import VerifyError, WrongGraphError
from orchestrator.mlpackage.verify.measure import Measured
from orchestrator.mlpackage.verify.mutations import Mutation
from orchestrator.mlpackage.verify.report import VerifyReport
from orchestrator.mlpackage.verify.run import verify
from tests.mlpackage.making import (
    SMALL,
    change_metadata,
    change_program,
    copied,
    flip_weight_bit,
)

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.mlpackage.build.coreml import Mil, MilObject
    from tests.mlpackage.conftest import Kits

MUTATIONS = {
    "mask off by one",
    "position off by one",
    "NaN in a masked row",
    "non-causal prefill",
}


@pytest.fixture
def small_kit(kits: Kits) -> Kit:
    return kits()


@pytest.fixture
def decode(small_kit: Kit, tmp_path: Path) -> Path:
    """A decode package that a test may damage."""
    return copied(small_kit.packages[0].path, tmp_path)


def verified(path: Path) -> VerifyReport:
    report = verify(path)
    assert isinstance(report, VerifyReport)
    return report


def test_the_tiny_preset_is_verified_with_all_mutations_noticed(tiny_kit: Kit) -> None:
    report = verified(tiny_kit.folder)
    assert report.findings == ()
    assert report.max_error < report.error_limit / 2
    assert report.top1_in_top3 == 1.0
    assert (report.rows_written, report.stray_rows) == (112, 0)
    assert {mutation.name for mutation in report.mutations} == MUTATIONS
    assert all(mutation.noticed for mutation in report.mutations)


@pytest.mark.parametrize("states", list(States))
@pytest.mark.parametrize("layout", list(Layout))
def test_every_layout_with_every_form_of_states_is_verified(
    kits: Kits, layout: Layout, states: States
) -> None:
    assert verified(kits(replace(SMALL, states=states), layout).folder).findings == ()


@pytest.mark.parametrize("weights", list(Weights))
def test_every_precision_is_verified(kits: Kits, weights: Weights) -> None:
    assert verified(kits(replace(SMALL, weights=weights)).folder).findings == ()


def test_the_fused_attention_is_verified(kits: Kits) -> None:
    assert verified(kits(replace(SMALL, attention=Attention.SDPA)).folder).findings == ()


@pytest.mark.parametrize("index", [0, 1])
def test_a_single_package_is_verified_by_itself(small_kit: Kit, index: int) -> None:
    built = small_kit.packages[index]
    report = verified(built.path)
    assert report.findings == ()
    assert report.roles == built.functions
    assert report.positions > 1


@pytest.fixture(scope="module")
def chunks(mil: Mil, tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """A layer a chunk, one state each."""
    recipe = replace(SMALL, layers=3, states=States.JOINT)
    limit_bytes = chunk_bytes(recipe, Chunk(1, 3, 0, 1)) + 1
    folder = tmp_path_factory.mktemp("chunks")
    return build_kit(mil, recipe, Layout.SEPARATE, folder, chunk_limit_bytes=limit_bytes)


def test_chunks_are_verified_as_a_chain_and_each_alone(chunks: Kit) -> None:
    assert {built.chunks for built in chunks.packages} == {3}
    assert verified(chunks.folder).findings == ()
    for built in chunks.packages:
        assert verified(built.path).findings == ()


def test_a_chain_with_a_missing_chunk_is_refused(chunks: Kit, tmp_path: Path) -> None:
    for built in chunks.packages:
        if built.chunk != 2:
            copied(built.path, tmp_path)
    with pytest.raises(VerifyError, match="a chunk between others is missing"):
        verify(tmp_path)


@pytest.mark.parametrize("weight", ["l1_down_idx", "embed_tokens_weight", "rope_sin", "l0_ln2"])
def test_one_wrong_bit_in_any_weight_is_found(decode: Path, weight: str) -> None:
    flip_weight_bit(decode, weight.removesuffix("_idx"))
    findings = verified(decode).findings
    assert any(weight.removesuffix("_idx") in finding for finding in findings), findings


def test_a_weight_that_logits_cannot_show_is_found(tiny_kit: Kit, tmp_path: Path) -> None:
    package = copied(tiny_kit.packages[1].path, tmp_path)
    flip_weight_bit(package, "l0_q")
    report = verified(package)
    assert report.max_error < report.error_limit
    assert len(report.findings) == 1


def rename_first(operations: MilObject, old: str, new: str) -> None:
    next(operation for operation in operations if operation.type == old).type = new


def silu_becomes_sigmoid(operations: MilObject) -> None:
    rename_first(operations, "silu", "sigmoid")


def add_becomes_sub(operations: MilObject) -> None:
    adds = [operation for operation in operations if operation.type == "add"]
    adds[-1].type = "sub"


def norms_with_an_epsilon_of_one(operations: MilObject) -> None:
    for operation in operations:
        if operation.type == "const" and "epsilon" in operation.outputs[0].name:
            operation.attributes["val"].immediateValue.tensor.bytes.values = b"\x00\x3c"


def softmax_over_queries(operations: MilObject) -> None:
    axis = next(op for op in operations if op.type == "const" and "softmax" in op.outputs[0].name)
    axis.attributes["val"].immediateValue.tensor.ints.values[0] = -2


@pytest.mark.parametrize(
    "change",
    [
        silu_becomes_sigmoid,
        add_becomes_sub,
        norms_with_an_epsilon_of_one,
        softmax_over_queries,
    ],
)
def test_a_wrong_graph_is_found(mil: Mil, decode: Path, change: object) -> None:
    change_program(mil, decode, change)  # type: ignore[arg-type]
    assert verified(decode).findings


def test_another_seed_in_the_metadata_is_found(mil: Mil, decode: Path) -> None:
    change_metadata(mil, decode, "fleet.recipe", seed=8)
    assert any("embed_tokens_weight" in finding for finding in verified(decode).findings)


@pytest.mark.parametrize(
    "fields",
    [{"layers": 1}, {"vocab": 10**9}, {"length": 512}, {"width": 64_000}, {"states": "joint"}],
)
def test_metadata_of_another_model_is_refused_before_its_weights_are_drawn(
    mil: Mil, decode: Path, fields: dict[str, object]
) -> None:
    change_metadata(mil, decode, "fleet.recipe", **fields)
    with pytest.raises(WrongGraphError) as caught:
        verify(decode)
    assert caught.value.exit_code is ExitCode.PRODUCT_FAILED


def test_a_graph_that_cannot_run_is_wrong_and_names_its_operation(mil: Mil, decode: Path) -> None:
    def turn(operations: MilObject) -> None:
        first = next(op for op in operations if op.type == "matmul")
        for name in ("x", "y"):
            first.inputs[name].arguments[0].name = "k_cache"

    change_program(mil, decode, turn)
    with pytest.raises(WrongGraphError, match=r"matmul|k_cache"):
        verify(decode)


def test_an_operation_that_is_not_known_is_named(mil: Mil, decode: Path) -> None:
    change_program(mil, decode, lambda operations: rename_first(operations, "silu", "gelu_odd"))
    with pytest.raises(VerifyError, match="no operation 'gelu_odd'") as caught:
        verify(decode)
    assert caught.value.exit_code is ExitCode.USAGE


def test_packages_of_different_models_are_refused(mil: Mil, small_kit: Kit, tmp_path: Path) -> None:
    copied(small_kit.packages[0].path, tmp_path)
    prefill = copied(small_kit.packages[1].path, tmp_path)
    change_metadata(mil, prefill, "fleet.recipe", seed=8)
    with pytest.raises(VerifyError, match="packages of different models"):
        verify(tmp_path)


def test_a_package_without_a_recipe_cannot_be_verified(mil: Mil, decode: Path) -> None:
    specification_path = decode / "Data" / "com.apple.CoreML" / "model.mlmodel"
    specification = mil.ct.proto.Model_pb2.Model()
    specification.ParseFromString(specification_path.read_bytes())
    specification.description.metadata.userDefined.clear()
    specification_path.write_bytes(specification.SerializeToString())
    with pytest.raises(VerifyError, match=r"no 'fleet\.recipe' in its metadata"):
        verify(decode)


def test_a_package_with_cut_weights_is_one_clear_error(decode: Path) -> None:
    weights = next(decode.rglob("weight.bin"))
    weights.write_bytes(weights.read_bytes()[:5000])
    with pytest.raises(PackageError, match=r"weight\.bin"):
        verify(decode)


def test_a_check_that_notices_nothing_does_not_pass(
    small_kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = [Mutation("mask off by one", Measured(errors=[0.0], top1_in_top3=1))]
    monkeypatch.setattr(verify_module, "run_mutations", lambda *_: blind)
    report = verified(small_kit.folder)
    assert report.findings == ("the mutation 'mask off by one' was not noticed",)


@pytest.mark.parametrize("text", ["7", "{", '{"layers": 1e99}', '{"weights": []}'])
def test_hostile_metadata_is_a_plain_error(mil: Mil, decode: Path, text: str) -> None:
    path = decode / "Data" / "com.apple.CoreML" / "model.mlmodel"
    specification = mil.ct.proto.Model_pb2.Model()
    specification.ParseFromString(path.read_bytes())
    specification.description.metadata.userDefined["fleet.recipe"] = text
    path.write_bytes(specification.SerializeToString())
    with pytest.raises(FleetError, match="not a recipe"):
        verify(decode)


def test_goldens_and_verification_use_sequences_of_their_own(small_kit: Kit) -> None:
    report = verified(small_kit.folder)
    assert np.isfinite(report.output_spread)
    assert report.weights_compared == 46
