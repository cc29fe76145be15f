"""Kits of the model builder as packages of a soak."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.running import packages_of
from orchestrator.config.load import load_config
from orchestrator.domain.errors import UsageError
from orchestrator.domain.phone import Phone
from orchestrator.harness.reference import reference_package
from orchestrator.mlpackage.build.recipe import TINY
from orchestrator.soak.plan import expectation_of
from tests.benchmarks.decoder_files import write_decoder_files

if TYPE_CHECKING:
    from pathlib import Path

SMALL = replace(TINY, layers=1, vocab=64, length=64, chunk=16)


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kit")
    write_decoder_files(SMALL, folder)
    return folder


def phone(product_type: str) -> Phone:
    return Phone(
        udid="00008120-0001", alias="desk", name="Desk", product_type=product_type, os="18.5",
        build="22F76", source="virtual", virtual=True, tags=(),
    )  # fmt: skip


def test_a_kit_is_pushed_with_its_goldens_under_the_digest_of_its_weights(kit: Path) -> None:
    package = reference_package("int4", kit)
    weights = (kit / "weights.safetensors").read_bytes()
    assert package.digest == hashlib.sha256(weights).hexdigest()
    assert set(package.files) == {"weights.safetensors", "goldens.json"}
    assert package.size_bytes == len(weights) + (kit / "goldens.json").stat().st_size
    assert package.listed()["kind"] == "reference"


def test_the_host_expects_no_pin_and_the_kits_length(kit: Path) -> None:
    config = load_config(None, ("model.engine=reference", f'model.int4="{kit}"'))
    packages = {package.quantization: package for package in packages_of(config)}
    expected = expectation_of(phone("iPhone15,4"), config, packages)
    assert (expected.pin_tokens, expected.capacity_tokens, expected.budget_tokens) == (0, 64, 64)
    with pytest.raises(UsageError, match="desk needs an int8 model"):
        expectation_of(phone("iPhone17,3"), config, packages)


def test_what_is_no_kit_of_that_width_is_refused(kit: Path, tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "weights.safetensors").write_text("hello")
    with pytest.raises(UsageError, match=r"the weights of .* are lut4"):
        reference_package("int8", kit)
    for folder in (tmp_path, tmp_path / "text"):
        with pytest.raises(UsageError, match=r"model\.int4"):
            reference_package("int4", folder)
