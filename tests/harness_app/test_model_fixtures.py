"""The models of the Swift tests are what the model kit makes today."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.harness_app.places import PACKAGE

pytest.importorskip("numpy", reason="the model kit needs the extra [models]")

from orchestrator.mlpackage.build.recipe import Recipe, Weights
from tests.benchmarks.decoder_files import write_decoder_files

if TYPE_CHECKING:
    from pathlib import Path

FIXTURES: Final = PACKAGE / "Tests" / "ReferenceEngineTests" / "Fixtures"


@pytest.mark.parametrize("weights", ["lut4", "int8"])
def test_a_fixture_is_what_the_kit_makes(weights: str, tmp_path: Path) -> None:
    recipe = Recipe(
        name="mini", layers=2, width=64, heads=2, kv_heads=1, head_dim=32, inner=96, vocab=256,
        length=160, chunk=16, weights=Weights(weights),
    )  # fmt: skip
    write_decoder_files(recipe, tmp_path)
    committed = FIXTURES / f"mini-{weights}"
    made = (tmp_path / "weights.safetensors").read_bytes()
    assert made == (committed / "weights.safetensors").read_bytes()
    goldens = (tmp_path / "goldens.json").read_text("utf-8")
    assert goldens == (committed / "goldens.json").read_text("utf-8")
