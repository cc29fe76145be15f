"""The schema for editors accepts what the reader accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from orchestrator.cli.schema import schema_text
from orchestrator.config.key_texts import KEY_TEXTS
from orchestrator.config.model import FleetConfig
from orchestrator.config.resolved import resolved_yaml
from orchestrator.config.schema import keys

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def validator() -> Any:  # noqa: ANN401 - the library has no types
    schema = json.loads(schema_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_committed_file_and_the_defaults_are_valid(validator: Any) -> None:  # noqa: ANN401
    validator.validate(yaml.safe_load((ROOT / "fleet.yaml").read_text()))
    validator.validate(yaml.safe_load(resolved_yaml(FleetConfig())))


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("scenario: nightly", True),
        ("scenario: nightli", False),
        ("checks: {memory.drift: {max_mib_per_hour: 4}}", True),
        ("checks: {memory.drift: {max_mb: 4}}", False),
        ("virtual: {phones: [{model: iPhone 16, os: 18.5}]}", True),
        ("virtual: {phones: [{model: iPhone 3}]}", False),
        ("policy: {budget_tokens: {6gb: 512}}", True),
        ("policy: {budget_tokens: {7gb: 512}}", False),
        ("gait: {}", False),
    ],
)
def test_what_an_editor_would_mark(text: str, valid: bool, validator: Any) -> None:  # noqa: ANN401
    assert validator.is_valid(yaml.safe_load(text)) is valid


def test_no_text_is_of_a_key_that_is_gone() -> None:
    assert set(KEY_TEXTS) <= {key.path for key in keys()}


def test_the_committed_file_names_its_schema() -> None:
    first = (ROOT / "fleet.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=docs/reference/fleet.schema.json"
