"""What is compressed and what stays, decided from the graph alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.mlpackage.build.recipe import Weights
from orchestrator.mlpackage.compress.plan import Keep, parse_keep, plan_compression
from orchestrator.mlpackage.errors import PackageError
from orchestrator.mlpackage.package import read_package

if TYPE_CHECKING:
    from pathlib import Path

    from tests.mlpackage.conftest import Kits

from dataclasses import replace

from tests.mlpackage.making import SMALL

FP16 = replace(SMALL, weights=Weights.FP16)
INNER = {f"l{layer}_{name}" for layer in (0, 1) for name in SMALL.layer_shapes()}
ALL = frozenset(Keep)


def planned(path: Path, weights: Weights, keep: frozenset[Keep]) -> tuple[set[str], dict[str, str]]:
    plan = plan_compression(path, read_package(path).model, weights, keep)
    return set(plan.compressed), plan.kept


def test_both_ends_and_the_position_tables_stay(kits: Kits) -> None:
    compressed, kept = planned(kits(FP16).packages[0].path, Weights.INT8, ALL)
    assert compressed == INNER
    assert kept == {
        "embed_tokens_weight": "first layer",
        "lm_head_weight": "last layer",
        "rope_cos": "position table",
        "rope_sin": "position table",
    }


def test_tables_stay_out_even_where_both_ends_are_given_up(kits: Kits) -> None:
    keep = frozenset({Keep.TABLES})
    compressed, kept = planned(kits(FP16).packages[0].path, Weights.LUT4, keep)
    assert compressed == INNER | {"embed_tokens_weight", "lm_head_weight"}
    assert set(kept) == {"rope_cos", "rope_sin"}


def test_a_compressed_package_is_not_compressed_again(kits: Kits) -> None:
    path = kits(SMALL).packages[0].path
    with pytest.raises(PackageError, match="compressed already: weight l0_q"):
        planned(path, Weights.INT8, ALL)


def test_fp16_is_no_compression(kits: Kits) -> None:
    with pytest.raises(UsageError, match="fp16 is no compression"):
        planned(kits(FP16).packages[0].path, Weights.FP16, ALL)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("fp16:first,last,tables", ALL),
        ("fp16:first, tables", frozenset({Keep.FIRST, Keep.TABLES})),
        ("fp16:", frozenset()),
    ],
)
def test_what_to_keep_is_read(text: str, wanted: frozenset[Keep]) -> None:
    assert parse_keep(text) == wanted


@pytest.mark.parametrize("text", ["", "first", "fp32:first", "fp16:middle", "fp16;first"])
def test_anything_else_to_keep_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not fp16"):
        parse_keep(text)
