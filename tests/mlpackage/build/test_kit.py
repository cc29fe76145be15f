"""What a build makes: equal bytes, shared weights, fp16 at both ends, no lint error."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.mlpackage.build.constants import Drawn
from orchestrator.mlpackage.build.goldens import canary_prompts
from orchestrator.mlpackage.build.kit import Kit, build_kit
from orchestrator.mlpackage.build.progress import Progress
from orchestrator.mlpackage.build.recipe import TINY, Attention, Layout, States, Weights
from orchestrator.mlpackage.build.saving import write_package
from orchestrator.mlpackage.digest import files_of, folder_digest
from orchestrator.mlpackage.lint.run import lint
from orchestrator.mlpackage.package import read_package
from orchestrator.mlpackage.stored import layers, stored_weights
from orchestrator.mlpackage.verify.feeds import Step, feed_for, padded
from orchestrator.mlpackage.verify.subject import load_subject
from tests.mlpackage.making import SMALL

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.mlpackage.build.coreml import Mil
    from tests.mlpackage.conftest import Kits


def test_the_same_recipe_gives_the_same_bytes(mil: Mil, tiny_kit: Kit, tmp_path: Path) -> None:
    again = build_kit(mil, TINY, Layout.SEPARATE, tmp_path)
    assert [package.digest for package in again.packages] == [
        package.digest for package in tiny_kit.packages
    ]
    assert folder_digest(tmp_path) == folder_digest(tiny_kit.folder)


def test_another_seed_gives_another_digest(kits: Kits) -> None:
    other = kits(replace(SMALL, seed=8))
    assert other.packages[0].digest != kits().packages[0].digest


def test_nothing_of_the_day_or_the_machine_is_in_a_package(tiny_kit: Kit) -> None:
    metadata = read_package(tiny_kit.packages[0].path).model.metadata
    assert {key for key in metadata if not key.startswith("com.github.apple")} == {
        "fleet.max_length",
        "fleet.part",
        "fleet.recipe",
        "fleet.widths",
    }
    assert not any("date" in key for key in metadata)


def test_the_kit_lists_its_packages_with_digest_and_size(tiny_kit: Kit) -> None:
    listed = json.loads((tiny_kit.folder / "kit.json").read_text())["packages"]
    for entry in listed:
        path = tiny_kit.folder / entry["path"]
        assert folder_digest(path) == entry["digest"]
        assert sum(file.stat().st_size for file in files_of(path)) == entry["bytes"]
    assert [entry["functions"] for entry in listed] == [["decode"], ["prefill"]]


@pytest.mark.parametrize("weights", list(Weights))
def test_only_inner_weights_are_compressed(kits: Kits, weights: Weights) -> None:
    kit = kits(replace(SMALL, weights=weights))
    for built in kit.packages:
        (function,) = read_package(built.path).model.functions.values()
        found = layers(stored_weights(function))
        kept = (*found.embedding, *found.tables, *found.output)
        assert {weight.name for weight in kept} == {
            "embed_tokens_weight",
            "rope_cos",
            "rope_sin",
            "lm_head_weight",
        }
        assert not any(weight.is_compressed for weight in kept)
        bits = {Weights.LUT4: 4, Weights.INT4: 4, Weights.INT8: 8, Weights.FP16: 16}[weights]
        assert [weight.bits for weight in found.inner] == [bits] * 14


@pytest.mark.parametrize("states", list(States))
@pytest.mark.parametrize("layout", list(Layout))
def test_presets_lint_without_an_error(kits: Kits, layout: Layout, states: States) -> None:
    kit = kits(replace(SMALL, states=states), layout)
    found = [finding for built in kit.packages for finding in lint([read_package(built.path)])]
    assert [finding for finding in found if finding.level == "error"] == []


def test_functions_of_one_package_share_their_weights(kits: Kits) -> None:
    both = kits(SMALL, Layout.MULTIFUNCTION).packages[0]
    assert both.functions == ("decode", "prefill")
    sizes = [read_package(built.path).weights for built in (both, kits().packages[0])]
    together, alone = (weights["weights/weight.bin"].size_bytes for weights in sizes)
    assert together < 1.1 * alone


def test_attention_is_written_out_unless_the_fused_form_is_asked_for(
    kits: Kits,
) -> None:
    kinds = {}
    for attention in Attention:
        kit = kits(replace(SMALL, attention=attention))
        (function,) = read_package(kit.packages[0].path).model.functions.values()
        kinds[attention] = {operation.kind for operation in function.block.walk()}
    assert "scaled_dot_product_attention" not in kinds[Attention.MATMUL]
    assert "scaled_dot_product_attention" in kinds[Attention.SDPA]
    assert "softmax" not in kinds[Attention.SDPA]


def test_progress_reaches_its_total(mil: Mil, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    progress = Progress(lambda label, done, total: seen.append((label, done, total)))
    build_kit(mil, SMALL, Layout.SEPARATE, tmp_path, progress)
    assert [done for _, done, _ in seen] == list(range(1, len(seen) + 1))
    assert seen[-1][1] == seen[-1][2]


def test_a_folder_that_is_no_package_is_not_replaced(mil: Mil, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    with pytest.raises(UsageError, match=r"no \.mlpackage"):
        write_package(mil, {}, tmp_path / "thesis", {})


def test_an_engine_in_fp16_meets_the_gates_of_the_goldens(tiny_kit: Kit) -> None:
    goldens = json.loads((tiny_kit.folder / "goldens.json").read_text())
    subject = load_subject(tiny_kit.folder)
    prompt = goldens["prompts"][1]
    assert prompt["ids"] == canary_prompts(TINY)[1]
    state = subject.make_state()
    equal = contained = 0
    judged = sorted(set(range(len(prompt["ids"]))) - set(prompt["near_ties"]))
    for position, token in enumerate(prompt["ids"]):
        first = padded(np.array([token], np.int32), 1)
        feed = feed_for(Step("decode", position, 1, 1), first, TINY.length, Layout.SEPARATE)
        row = subject.predict("decode", feed, state)[0, 0]
        best = np.argsort(-row)[:3]
        if position in judged:
            equal += best[0] == prompt["top_ids"][position][0]
            contained += prompt["top_ids"][position][0] in best
    assert equal >= goldens["gates"]["top1_equal"] * len(judged)
    assert contained == len(judged) > 0.9 * len(prompt["ids"])


def test_the_twin_holds_what_the_packages_hold(kits: Kits) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    for weights in Weights:
        recipe = replace(SMALL, weights=weights)
        kit = kits(recipe)
        tensors = safetensors.load_file(kit.folder / "weights.safetensors")
        assert np.array_equal(
            expanded(tensors, "l1_down", weights), Drawn(recipe).matrix(1, "down").dense()
        )
        assert np.array_equal(tensors["lm_head"], Drawn(recipe).table("lm_head").dense())


def expanded(tensors: dict[str, Any], name: str, weights: Weights) -> Any:  # noqa: ANN401 - numpy
    """Read the twin as its format is described, not as the builder wrote it."""

    def nibbles(packed: np.ndarray) -> np.ndarray:
        pair = np.stack([packed & 15, packed >> 4], axis=-1)
        return pair.reshape(len(packed), -1)

    if weights is Weights.FP16:
        return tensors[name]
    if weights is Weights.LUT4:
        indices = nibbles(tensors[f"{name}.indices"])
        groups = np.arange(len(indices)) // 16
        return tensors[f"{name}.palettes"][groups[:, None], indices]
    integers = tensors[f"{name}.integers"]
    if weights is Weights.INT4:
        integers = nibbles(integers).astype(np.int8)
        integers = np.where(integers > 7, integers - 16, integers)
    scales = tensors[f"{name}.scales"].astype(np.float32)
    scales = np.repeat(scales, integers.shape[1] // scales.shape[1], axis=1)
    return (integers * scales).astype(np.float16)
