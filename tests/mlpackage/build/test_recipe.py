"""Sizes of the presets, what a recipe refuses, and how a model is cut into chunks."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.mlpackage.build.chunks import (
    CHUNK_LIMIT_BYTES,
    Chunk,
    Part,
    chunk_bytes,
    cut,
    parts_of,
)
from orchestrator.mlpackage.build.recipe import (
    ONE_B,
    THREE_B,
    TINY,
    Layout,
    Recipe,
    States,
    Weights,
    preset,
)


def test_the_presets_have_the_sizes_that_their_names_promise() -> None:
    assert TINY.parameters == 5_046_272
    assert ONE_B.parameters == 1_107_296_256
    assert THREE_B.parameters == 3_019_898_880
    assert (ONE_B.kv_bytes, THREE_B.kv_bytes) == (67_108_864, 234_881_024)


def test_a_preset_takes_the_weights_that_are_asked_for() -> None:
    assert preset("tiny", Weights.INT8).weights is Weights.INT8
    with pytest.raises(UsageError, match="no preset 'huge', only tiny, 1b, 3b and witness"):
        preset("huge", Weights.INT8)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kv_heads": 3}, "4 heads over 3"),
        ({"layers": 0}, "at least 1"),
        ({"chunk": 4096}, "chunk 4096 over 2048 rows"),
        ({"inner": 100}, "does not divide"),
        ({"head_dim": 48, "heads": 4}, "48 is not a multiple of 32"),
    ],
)
def test_sizes_that_no_phone_takes_are_refused(change: dict[str, int], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        replace(TINY, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize("recipe", [TINY, ONE_B, THREE_B])
def test_a_recipe_survives_its_metadata(recipe: Recipe) -> None:
    assert Recipe.from_json(recipe.as_json()) == recipe


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weights":"lut4"}', "7", '{"layers":"x"}'])
def test_metadata_of_a_stranger_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a recipe"):
        Recipe.from_json(text)
    with pytest.raises(UsageError, match="not a part"):
        Part.from_json(text)


def test_a_part_with_a_role_that_does_not_exist_is_refused() -> None:
    part = json.loads(Part(Layout.SEPARATE, ("decode",), Chunk(1, 1, 0, 4)).as_json())
    with pytest.raises(UsageError, match="not a part"):
        Part.from_json(json.dumps(part | {"functions": ["train"]}))


def test_a_model_with_a_pair_of_states_stays_whole() -> None:
    assert cut(ONE_B, limit_bytes=1) == [Chunk(1, 1, 0, 16)]


@pytest.mark.parametrize("weights", list(Weights))
def test_the_chunks_of_the_large_preset_cover_it_and_stay_under_one_gigabyte(
    weights: Weights,
) -> None:
    recipe = replace(THREE_B, weights=weights)
    chunks = cut(recipe)
    assert [layer for chunk in chunks for layer in chunk.layers] == list(range(28))
    assert max(chunk_bytes(recipe, chunk) for chunk in chunks) < CHUNK_LIMIT_BYTES


def test_no_fewer_chunks_would_do() -> None:
    assert len(cut(THREE_B)) == 2
    assert chunk_bytes(THREE_B, Chunk(1, 1, 0, 28)) > CHUNK_LIMIT_BYTES


def test_chunks_take_ids_at_one_end_and_give_logits_at_the_other() -> None:
    chunks = cut(THREE_B)
    assert [chunk.has_embedding for chunk in chunks] == [True, *[False] * (len(chunks) - 1)]
    assert [chunk.has_head for chunk in chunks] == [*[False] * (len(chunks) - 1), True]


def test_a_model_whose_tables_alone_are_too_large_is_refused() -> None:
    with pytest.raises(UsageError, match="no chunks under"):
        cut(replace(TINY, states=States.JOINT), limit_bytes=1000)


def test_packages_are_named_by_role_and_chunk() -> None:
    names = [part.name for part in parts_of(THREE_B, Layout.SEPARATE)]
    assert names == ["decode-1of2", "prefill-1of2", "decode-2of2", "prefill-2of2"]
    assert [part.name for part in parts_of(TINY, Layout.MULTIFUNCTION)] == ["model"]
