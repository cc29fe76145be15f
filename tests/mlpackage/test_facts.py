"""What is read off a graph: caches, layers, precisions, activations, names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.mlpackage.activations import activation_bytes
from orchestrator.mlpackage.cache import aliased_outputs, architecture, cached_states
from orchestrator.mlpackage.inspect import report
from orchestrator.mlpackage.names import roles
from orchestrator.mlpackage.package import Package, read_package
from orchestrator.mlpackage.stored import layers, stored_weights
from tests.mlpackage.small import LENGTH, Decoder, Input, State, write_package

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.mlpackage.graph import Function

# Shapes of states as public models have them: [layers, kv heads, length, head dim] and its kin.
LAYOUTS = {
    "a state for keys and one for values": (
        (State("k", (16, 8, LENGTH, 32)), State("v", (16, 8, LENGTH, 32))),
        (16, 8, 32),
    ),
    "Hugging Face, with a batch axis": (
        (State("keyCache", (22, 1, 4, LENGTH, 64)), State("valueCache", (22, 1, 4, LENGTH, 64))),
        (22, 4, 64),
    ),
    "ANEMLL, keys and values in one": ((State("kv_cache_0", (56, 8, LENGTH, 128)),), (28, 8, 128)),
    "a pair of states for each layer": (
        tuple(State(f"{kv}_{n}", (1, 2, LENGTH, 32)) for n in range(3) for kv in "kv"),
        (3, 2, 32),
    ),
}


def function_of(tmp_path: Path, decoder: Decoder) -> Function:
    path = write_package(tmp_path / "one.mlpackage", {"main": decoder})
    return read_package(path).model.functions["main"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layers_heads_and_head_dim_come_from_the_states(layout: str, tmp_path: Path) -> None:
    states, expected = LAYOUTS[layout]
    found = architecture(function_of(tmp_path, Decoder(states=states, written=False)))
    assert (found.layers, found.kv_heads, found.head_dim) == expected
    assert found.maximum_length == LENGTH


def test_kv_bytes_per_token_times_length_is_the_size_of_the_states(tmp_path: Path) -> None:
    states = LAYOUTS["ANEMLL, keys and values in one"][0]
    found = architecture(function_of(tmp_path, Decoder(states=states, written=False)))
    assert found.kv_bytes_per_token == 2 * 28 * 8 * 128 * 2
    assert found.kv_bytes == found.kv_bytes_per_token * LENGTH


def test_the_length_axis_is_where_the_graph_appends_rows(tmp_path: Path) -> None:
    # The mask is of another length, so only the write can tell.
    mask = Input("causal_mask", "fp16", (1, 1, 1, 7))
    states = cached_states(function_of(tmp_path, Decoder(mask=mask)))
    assert [state.length for state in states] == [LENGTH, LENGTH]
    assert [(state.reads, state.writes) for state in states] == [(1, 1), (1, 1)]


def test_without_writes_the_mask_tells_the_length_axis(tmp_path: Path) -> None:
    states = cached_states(function_of(tmp_path, Decoder(written=False)))
    assert [state.length_axis for state in states] == [2, 2]


def test_a_mask_may_cover_the_rows_of_the_step_too(tmp_path: Path) -> None:
    mask = Input("causal_mask", "fp16", (1, 1, 8, LENGTH + 8))
    states = cached_states(function_of(tmp_path, Decoder(width=8, written=False, mask=mask)))
    assert [state.length for state in states] == [LENGTH, LENGTH]


def test_without_writes_and_mask_the_length_is_unknown(tmp_path: Path) -> None:
    mask = Input("causal_mask", "fp16", (1, 1, 1, 7))
    function = function_of(tmp_path, Decoder(written=False, mask=mask))
    assert architecture(function).maximum_length is None


def test_query_heads_do_not_depend_on_the_width_of_a_step(tmp_path: Path) -> None:
    assert architecture(function_of(tmp_path / "a", Decoder())).query_heads == 4
    assert architecture(function_of(tmp_path / "b", Decoder(width=8))).query_heads == 4


def test_an_output_that_is_also_written_is_found(tmp_path: Path) -> None:
    assert aliased_outputs(function_of(tmp_path, Decoder(output_is_written=True))) == ("logits",)


def test_weights_are_sorted_by_what_they_do(tmp_path: Path) -> None:
    found = layers(stored_weights(function_of(tmp_path, Decoder())))
    assert [weight.name for weight in found.embedding] == ["embed"]
    assert [weight.name for weight in found.tables] == ["rope_cos"]
    assert [weight.name for weight in found.inner] == ["layer0", "layer1"]
    assert [weight.name for weight in found.output] == ["lm_head"]
    assert found.hidden == 32


def test_a_chunk_that_ends_within_the_layers_has_no_output_projection(tmp_path: Path) -> None:
    found = layers(stored_weights(function_of(tmp_path, Decoder(output=None, embedding=None))))
    assert (found.embedding, found.output) == ((), ())
    assert len(found.inner) == 2


@pytest.mark.parametrize(
    ("encoding", "bits", "stored"),
    [
        ("dense", 16, "dense"),
        ("lut4", 4, "lut_to_dense"),
        ("int8", 8, "blockwise_shift_scale"),
        ("int4", 4, "blockwise_shift_scale"),
    ],
)
def test_encoding_and_bits_of_a_weight(
    encoding: str, bits: int, stored: str, tmp_path: Path
) -> None:
    function = function_of(tmp_path, Decoder(inner=(encoding,)))
    weight = layers(stored_weights(function)).inner[0]
    assert (weight.encoding, weight.bits, weight.shape) == (stored, bits, (32, 32))


def test_bits_per_weight_count_tables_and_scales(tmp_path: Path) -> None:
    decoder = Decoder(embedding=None, output=None, table="int8", inner=("int8",))
    found = report(package_of(tmp_path, {"main": decoder}), None)
    # 64 x 16 and 32 x 32 elements of 8 bits, and a scale of 16 bits for each of 96 rows.
    assert found.bits_per_weight == round((2048 * 8 + 96 * 16) / 2048, 2)


def package_of(tmp_path: Path, functions: dict[str, Decoder]) -> Package:
    return read_package(write_package(tmp_path / "p.mlpackage", functions))


def test_a_tensor_that_two_functions_share_is_counted_once(tmp_path: Path) -> None:
    decoder = Decoder()
    two = report(package_of(tmp_path / "two", {"a": decoder, "b": replace(decoder, width=8)}), None)
    one = report(package_of(tmp_path / "one", {"a": decoder}), None)
    assert two.parameters == one.parameters
    assert two.precisions == one.precisions
    assert sum(p.size_bytes for p in two.precisions.values()) < two.weights_bytes


def test_a_report_says_precisions_of_the_ends_and_of_the_inner_layers(tmp_path: Path) -> None:
    found = report(package_of(tmp_path, {"main": Decoder(output="int8")}), None).functions[0]
    assert found.first_layer == "dense fp16"
    assert found.last_layer == "blockwise_shift_scale 8 bit"
    assert found.inner_layers == {"lut_to_dense 4 bit": 2}
    assert (found.vocabulary, found.hidden) == (96, 32)


def test_activations_are_what_is_alive_at_once(tmp_path: Path) -> None:
    narrow = activation_bytes(function_of(tmp_path / "n", Decoder()))
    wide = activation_bytes(function_of(tmp_path / "w", Decoder(width=8)))
    # x0 [1, 1, 32], softmax [1, 2, 2, 64] in fp16: the updated states are no buffers of their own.
    assert narrow == (32 + 256) * 2
    assert wide == 8 * narrow


def test_names_of_public_packages_get_their_roles(tmp_path: Path) -> None:
    decoder = Decoder(
        states=(State("keyCache"), State("valueCache")),
        tokens=Input("inputIds", "int32", (1, 1)),
        mask=Input("causalMask", "fp16", (1, 1, 1, LENGTH)),
    )
    found = roles([package_of(tmp_path, {"main": decoder}).model])
    assert found == {
        "position_ids": ("position_ids",),
        "causal_mask": ("causalMask",),
        "input_ids": ("inputIds",),
        "logits": ("logits",),
        "key_cache": ("keyCache",),
        "value_cache": ("valueCache",),
    }


def test_names_of_chunks_come_together(tmp_path: Path) -> None:
    chunks = [
        package_of(tmp_path / "0", {"main": Decoder(states=(State("model_kv_cache_0"),))}),
        package_of(tmp_path / "1", {"main": Decoder(states=(State("model_kv_cache_1"),))}),
    ]
    found = roles(chunk.model for chunk in chunks)
    assert found["kv_cache"] == ("model_kv_cache_0", "model_kv_cache_1")
