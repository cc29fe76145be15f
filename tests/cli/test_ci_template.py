"""The files for CI systems pass the schemas that the systems publish, and call what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import typer
import yaml

from orchestrator.cli.ci_recipes import RECIPES, recipe
from orchestrator.cli.main import COMMANDS, app

if TYPE_CHECKING:
    from pathlib import Path

PHONES = ("bench-01", "bench-02")
SCHEMAS = {
    "github": ("--builtin-schema", "vendor.github-workflows"),
    "gitlab": ("--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci"),
    "buildkite": ("--builtin-schema", "vendor.buildkite"),
}


def checked(system: str, text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / f"{system}.yml"
    file.write_text(text)
    words = [sys.executable, "-m", "check_jsonschema", *SCHEMAS[system], str(file)]
    return subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize("system", RECIPES)
def test_a_file_passes_the_schema_of_its_system_and_a_broken_one_does_not(
    system: str, tmp_path: Path
) -> None:
    text = recipe(system, PHONES, "8h")
    passed = checked(system, text, tmp_path)
    assert passed.returncode == 0, passed.stdout
    broken = {
        "github": text.replace("runs-on:", "run-on:"),
        "gitlab": text.replace("when: always", "when: sometimes"),
        "buildkite": text.replace("timeout_in_minutes: 720", "timeout_in_minutes: soon"),
    }
    assert checked(system, broken[system], tmp_path).returncode != 0


@pytest.mark.parametrize("system", RECIPES)
def test_every_command_and_option_in_a_file_is_there(system: str) -> None:
    root: Any = typer.main.get_command(app)
    text = recipe(system, PHONES, "8h")
    calls = re.findall(r"\.venv/bin/fleet (\w+)([^|\n]*)", text)
    assert {name for name, _ in calls} >= {"build", "soak"}
    for name, rest in calls:
        assert name in COMMANDS
        known = {
            option for parameter in root.get_command(None, name).params for option in parameter.opts
        }
        assert set(re.findall(r"--[a-z-]+", rest)) <= known


@pytest.mark.parametrize("system", RECIPES)
def test_phones_are_jobs_of_their_own_and_nothing_is_left_to_fill_in(system: str) -> None:
    text = recipe(system, PHONES, "30m")
    assert '["bench-01", "bench-02"]' in text
    assert "30m" in text
    assert not re.search(r"@[A-Z_]+@", text)
    assert '["all"]' in recipe(system, (), "8h")
    assert yaml.safe_load(text)
