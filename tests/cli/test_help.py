"""`--help` of every command shows an example and the exit codes; shells complete."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.commands import help_of, root, walk

FLEET = Path(sys.executable).with_name("fleet")


def test_every_command_has_an_example_and_the_exit_codes() -> None:
    texts = {path: help_of(path, command) for path, command in walk(root())}
    assert len(texts) > 30
    assert [path for path, text in texts.items() if "Example" not in text] == []
    assert [path for path, text in texts.items() if "xit codes" not in text] == []
    crowded = [path for path, text in texts.items() if "--install-completion" in text]
    assert [path for path in crowded if path != "fleet"] == []


def test_a_command_has_one_list_of_exit_codes() -> None:
    texts = {path: help_of(path, command) for path, command in walk(root())}
    assert [path for path, text in texts.items() if text.count("Exit codes:") > 1] == []
    assert "0 every phone measured" in texts["fleet calibrate"]


def test_the_help_of_signoff_names_what_a_sign_off_needs() -> None:
    text = next(help_of(path, one) for path, one in walk(root()) if path == "fleet signoff")
    assert "--release names the version" in text
    assert "--require the policy" in text


def test_lists_of_commands_are_not_cut_off() -> None:
    texts = {path: help_of(path, command) for path, command in walk(root())}
    cut = [path for path, text in texts.items() if re.search(r"[\w,]\.\.\.$", text, re.MULTILINE)]
    assert cut == []


@pytest.mark.parametrize(
    ("shell", "asked"),
    [
        ("bash", {"COMP_WORDS": "fleet exp", "COMP_CWORD": "1"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "fleet exp"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "fleet exp", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_a_shell_completes_commands(shell: str, asked: dict[str, str]) -> None:
    environment = os.environ | asked | {"_FLEET_COMPLETE": f"complete_{shell}"}
    done = subprocess.run(
        [FLEET], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert "explain" in done.stdout
    assert done.stderr == ""


def test_the_words_of_explain_are_completed() -> None:
    asked = {"COMP_WORDS": "fleet explain trim.on", "COMP_CWORD": "2"}
    environment = os.environ | asked | {"_FLEET_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [FLEET], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == ["trim.on-schedule"]


@pytest.mark.parametrize(
    ("typed", "said"),
    [("sook", "Did you mean 'soak'?"), ("zzzz", "`fleet --help` lists them.")],
)
def test_a_command_that_is_not_there_is_answered_with_the_nearest(typed: str, said: str) -> None:
    done = subprocess.run([FLEET, typed], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert f"No such command '{typed}'. {said}" in done.stderr
