"""Kits that several tests read. Without coremltools they are skipped, or fail where it is due."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.mlpackage.build.kit import Kit, build_kit
from orchestrator.mlpackage.build.recipe import TINY, Layout
from orchestrator.mlpackage.build.witness import WitnessRecipe, build_witness
from tests.mlpackage.making import SMALL, require_models

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.mlpackage.build.coreml import Mil
    from orchestrator.mlpackage.build.recipe import Recipe


@pytest.fixture(scope="session")
def mil() -> Mil:
    return require_models()


@pytest.fixture(scope="session")
def tiny_kit(mil: Mil, tmp_path_factory: pytest.TempPathFactory) -> Kit:
    return build_kit(mil, TINY, Layout.SEPARATE, tmp_path_factory.mktemp("tiny"))


class Kits:
    """Builds each model once in a session; tests that change a package copy it first."""

    def __init__(self, mil: Mil, folder: Path) -> None:
        self._mil, self._folder = mil, folder
        self._built: dict[tuple[Recipe, Layout], Kit] = {}

    def __call__(self, recipe: Recipe = SMALL, layout: Layout = Layout.SEPARATE) -> Kit:
        key = (recipe, layout)
        if key not in self._built:
            folder = self._folder / str(len(self._built))
            self._built[key] = build_kit(self._mil, recipe, layout, folder)
        return self._built[key]


@pytest.fixture(scope="session")
def kits(mil: Mil, tmp_path_factory: pytest.TempPathFactory) -> Kits:
    return Kits(mil, tmp_path_factory.mktemp("kits"))


@pytest.fixture(scope="session")
def witness_kit(mil: Mil, tmp_path_factory: pytest.TempPathFactory) -> Kit:
    return build_witness(mil, WitnessRecipe(), Layout.SEPARATE, tmp_path_factory.mktemp("witness"))
