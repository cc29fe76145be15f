"""The KV-cache ceiling: formula, phones, rooms, recommendations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.domain.iphone import MIB
from orchestrator.mlpackage.budget.ceiling import APP_BYTES, Ceiling, ceilings
from orchestrator.mlpackage.budget.demand import Demand, demand_of, kv_cache_bytes
from orchestrator.mlpackage.budget.phones import MeasuredLimit, offers
from orchestrator.mlpackage.package import read_package
from tests.mlpackage.small import LENGTH, Decoder, write_package

if TYPE_CHECKING:
    from pathlib import Path

WORKED = Demand(
    weights_bytes=1_700_000_000,
    kv_bytes_per_token=kv_cache_bytes(32, 32, 128, 1),
    maximum_length=None,
    activations_bytes=0,
)


def ceiling(demand: Demand, phone: str = "iPhone 14", headroom_percent: float = 20) -> Ceiling:
    return ceilings(demand, offers([phone], {}, entitled=False), headroom_percent)[0]


def test_the_worked_example() -> None:
    assert kv_cache_bytes(32, 32, 128, 2048) == 1_073_741_824


def test_the_usable_part_is_the_limit_less_the_headroom() -> None:
    assert ceiling(WORKED, headroom_percent=20).usable_bytes == 2867 * MIB * 80 // 100
    assert ceiling(WORKED, headroom_percent=0).usable_bytes == 2867 * MIB


def test_weights_count_only_where_they_are_in_the_footprint() -> None:
    found = ceiling(WORKED)
    difference = found.on_neural_engine.kv_room_bytes - found.in_footprint.kv_room_bytes
    assert difference == WORKED.weights_bytes
    room_bytes = found.usable_bytes - APP_BYTES
    assert found.on_neural_engine.safe_context == room_bytes // WORKED.kv_bytes_per_token
    assert found.in_footprint.safe_context == (
        (room_bytes - WORKED.weights_bytes) // WORKED.kv_bytes_per_token
    )


def test_the_models_own_maximum_caps_the_context() -> None:
    found = ceiling(replace(WORKED, maximum_length=512))
    assert found.on_neural_engine.safe_context == 512


def test_the_cache_at_the_safe_context_fits_and_one_token_more_does_not() -> None:
    room = ceiling(WORKED).in_footprint
    assert WORKED.kv_bytes(room.safe_context) <= room.kv_room_bytes
    assert WORKED.kv_bytes(room.safe_context + 1) > room.kv_room_bytes


@pytest.mark.parametrize(
    ("phone", "tokens", "bits"), [("iPhone 14", 1024, 4), ("iPhone 16", 2048, 8)]
)
def test_the_class_gives_budget_and_bits(phone: str, tokens: int, bits: int) -> None:
    small = replace(WORKED, weights_bytes=500_000_000)
    found = ceiling(small, phone)
    assert (found.recommended_tokens, found.recommended_bits) == (tokens, bits)
    assert not found.needs_neural_engine


def test_a_budget_is_whole_chunks_of_what_fits() -> None:
    tight = replace(WORKED, weights_bytes=2_300_000_000 - 100 * WORKED.kv_bytes_per_token)
    found = ceiling(tight)
    assert found.recommended_tokens == found.in_footprint.safe_context // 64 * 64
    assert 0 < found.recommended_tokens < 1024


def test_weights_that_do_not_fit_the_footprint_need_the_neural_engine() -> None:
    found = ceiling(replace(WORKED, weights_bytes=3_000_000_000))
    assert found.in_footprint.safe_context == 0
    assert found.needs_neural_engine
    assert found.recommended_tokens == 1024


def test_what_never_fits_gets_no_budget() -> None:
    found = ceiling(replace(WORKED, activations_bytes=4_000_000_000))
    assert (found.recommended_tokens, found.needs_neural_engine) == (0, False)
    assert found.largest_parameters_4bit == 0


def test_twice_the_parameters_fit_at_half_the_bits() -> None:
    found = ceiling(WORKED)
    assert found.largest_parameters_4bit == 2 * found.largest_parameters_8bit
    cache_bytes = WORKED.kv_bytes(found.recommended_tokens)
    assert found.largest_parameters_8bit + cache_bytes + APP_BYTES == found.usable_bytes


@pytest.mark.parametrize(
    ("phone", "chip"),
    [
        ("iPhone 14", "A15"),
        ("iPhone 14 Pro", "A16"),
        ("iPhone 15", "A16"),
        ("iPhone 15 Pro", "A17 Pro"),
        ("iPhone 16e", "A18"),
        ("iPhone 16 Pro", "A18 Pro"),
    ],
)
def test_the_chip_of_a_phone(phone: str, chip: str) -> None:
    assert offers([phone], {}, entitled=False)[0].chip == chip


def test_int8_activations_are_recommended_only_where_the_chip_computes_them() -> None:
    assert "activations gain" in ceiling(WORKED, "iPhone 15 Pro").recommended_form
    assert ceiling(WORKED, "iPhone 15").recommended_form == "4-bit palettes, activations fp16"


def test_all_phones_that_a_soak_covers_come_by_default() -> None:
    models = {offer.model for offer in offers([], {}, entitled=False)}
    assert {"iPhone 14", "iPhone 15 Pro Max", "iPhone 16e"} <= models
    assert "iPhone Air" not in models
    assert len(models) == 13


def test_a_measured_limit_takes_the_place_of_the_documented_one() -> None:
    measured = {("iPhone 14", False): MeasuredLimit(3_000_000_000, "20260101-run")}
    plain, entitled = (offers(["iphone 14"], measured, entitled=e)[0] for e in (False, True))
    assert (plain.limit_bytes, plain.limit_origin) == (3_000_000_000, "measured in 20260101-run")
    assert (entitled.limit_bytes, entitled.limit_origin) == (4096 * MIB, "documented")


def test_an_unknown_phone_is_answered_with_near_ones() -> None:
    with pytest.raises(UsageError, match="iPhone 15"):
        offers(["iPhone 15 Prro"], {}, entitled=False)


def test_demand_of_a_package(tmp_path: Path) -> None:
    found = demand_of([read_package(write_package(tmp_path / "p.mlpackage"))])
    assert (found.layers, found.kv_heads, found.head_dim) == (1, 2, 32)
    assert found.kv_bytes_per_token == kv_cache_bytes(1, 2, 32, 1)
    assert found.maximum_length == LENGTH


def test_chunks_add_up_and_prefill_beside_decode_does_not(tmp_path: Path) -> None:
    def demand(name: str, decoders: list[Decoder]) -> Demand:
        paths = [
            write_package(tmp_path / f"{name}{n}.mlpackage", {"main": decoder})
            for n, decoder in enumerate(decoders)
        ]
        return demand_of([read_package(path) for path in paths])

    one = demand("one", [Decoder()])
    chunks = demand("chunks", [Decoder(), Decoder()])
    pair = demand("pair", [Decoder(), Decoder(width=8)])
    assert chunks.kv_bytes_per_token == 2 * one.kv_bytes_per_token
    assert chunks.layers == 2
    assert pair.kv_bytes_per_token == one.kv_bytes_per_token
    assert pair.weights_bytes == chunks.weights_bytes == 2 * one.weights_bytes
