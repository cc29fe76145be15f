"""Links lead somewhere, and every command that README and docs show is one that is there.

Commands are parsed by the real command line: names, options and values. What runs them is named in
`RUN_BY`, by first words; commands that are not there are parsed alone, and this table says so.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

import pytest
import typer
import typer.core
from typer._click import Context
from typer._click.exceptions import ClickException

from tests.docs.commands import root

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if path.name not in ("CHANGELOG.md", "cli.md")  # history; made from the code itself
)

# First words of a command: the test that runs it. The rest is parsed only.
RUN_BY: Final = {
    "fleet soak": "tests/end_to_end/conftest.py",
    "fleet plan": "tests/end_to_end/test_plan.py",
    "fleet explain": "tests/cli/test_config_commands.py",
    "fleet report": "tests/report/test_remake.py",
    "fleet config check": "tests/cli/test_config_commands.py",
    "fleet config show": "tests/cli/test_config_commands.py",
    "fleet schema": "tests/cli/test_config_commands.py",
    "fleet contract": "tests/end_to_end/test_contract_commands.py",
    "fleet crashlog parse": "tests/cli/test_crashlog.py",
    "fleet devices": "tests/end_to_end/test_served_phones.py",
    "fleet status": "tests/end_to_end/test_lab_commands.py",
    "fleet stop": "tests/end_to_end/test_lab_commands.py",
    "fleet who": "tests/end_to_end/test_lab_commands.py",
    "fleet unlock": "tests/end_to_end/test_lab_commands.py",
    "fleet selftest": "tests/end_to_end/test_selftest.py",
    "fleet signoff": "tests/cli/test_release_commands.py",
    "fleet history": "tests/cli/test_release_commands.py",
    "fleet compare": "tests/cli/test_release_commands.py",
    "fleet baseline": "tests/cli/test_release_commands.py",
    "fleet prune": "tests/cli/test_prune.py",
    "fleet model": "tests/cli/test_model_reading.py",
    "fleet virtual serve": "tests/end_to_end/test_served_phones.py",
}

_FENCE: Final = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"`([^`\n]+)`")
_LINK: Final = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
_SHELL: Final = ("", "sh", "bash", "shell", "console")
_PLACEHOLDER: Final = re.compile(r"\[|\.\.\.|…|\||<|\{|\b[A-Z]{4,}\b|\$")
_MAKE_TARGET: Final = re.compile(r"^([a-z-]+):", re.MULTILINE)


def text_of(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def fenced_commands(document: str) -> list[str]:
    """Commands of shell blocks, whole and without comments."""
    lines: list[str] = []
    for language, body in _FENCE.findall(text_of(document)):
        if language in _SHELL:
            lines += body.replace("\\\n", " ").splitlines()
    stripped = (line.strip().removeprefix("$ ").removeprefix(".venv/bin/") for line in lines)
    return [line for line in stripped if line.startswith(("fleet ", "make "))]


def inline_commands(document: str) -> list[str]:
    plain = _FENCE.sub("", text_of(document))
    return [code for code in _CODE.findall(plain) if code.startswith(("fleet ", "make "))]


def parsed(words: list[str]) -> str | None:
    """Return what is wrong with a command line by the command line itself, None if nothing."""
    command, context = root(), None
    rest = words[1:]
    try:
        while True:
            context = Context(command, info_name=words[0], parent=context)
            context.resilient_parsing = False
            command.parse_args(context, list(rest))
            if not isinstance(command, typer.core.TyperGroup):
                return None
            left = [*context._protected_args, *context.args]
            name, found, rest = command.resolve_command(context, left)
            if found is None:
                return f"no command {name}"
            command = found
    except typer.Exit:
        return None  # --help, or a group that shows it
    except ClickException as error:
        return error.format_message()


def problem_of(line: str) -> str | None:
    words = shlex.split(line, comments=True)
    cut = next((i for i, word in enumerate(words) if word in ("|", ">", "&&", ";", "&")), None)
    words = words[:cut]
    if words[0] == "make":
        known = _MAKE_TARGET.findall((ROOT / "Makefile").read_text())
        targets = [word for word in words[1:] if "=" not in word]
        return None if set(targets) <= set(known) else f"no make target in {targets}"
    return parsed(words)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    targets = [
        target for pair in _LINK.findall(_FENCE.sub("", text_of(document))) for target in pair
    ]
    local = [target for target in targets if target and "://" not in target and target[0] != "#"]
    folder = (ROOT / document).parent
    missing = [target for target in local if not (folder / target.partition("#")[0]).exists()]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_in_blocks_are_parsed_by_the_command_line(document: str) -> None:
    lines = [line for line in fenced_commands(document) if not _PLACEHOLDER.search(line)]
    problems = {line: problem_of(line) for line in lines}
    assert {line: text for line, text in problems.items() if text} == {}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_in_text_name_commands_that_are_there(document: str) -> None:
    unknown = []
    for line in inline_commands(document):
        first = re.split(r"[\\|,\[\s]", line.partition(" ")[2])[0]
        if line.startswith("make "):
            known = first in _MAKE_TARGET.findall((ROOT / "Makefile").read_text())
        else:
            group = root()
            assert isinstance(group, typer.core.TyperGroup)
            known = first in group.list_commands(Context(group)) or first[:1] in ("-", "C", "X")
        if not known:
            unknown.append(line)
    assert unknown == []


def test_a_wrong_command_is_noticed() -> None:
    assert problem_of("fleet soak --devises all") is not None
    assert problem_of("fleet sook") is not None
    assert problem_of("fleet soak --seed x") is not None
    assert problem_of("make soup") is not None
    assert problem_of("fleet soak --devices all --virtual  # a comment") is None


@pytest.mark.parametrize("command", RUN_BY)
def test_what_is_said_to_run_a_command_is_there_and_names_it(command: str) -> None:
    words = command.split()[1:]
    assert problem_of(f"fleet {words[0]} --help") is None
    text = (ROOT / RUN_BY[command]).read_text()
    assert all(re.search(rf"\b{re.escape(word)}\b", text) for word in words[:1])


def test_what_is_read_in_order_is_reached_by_links() -> None:
    linked: set[str] = set()
    for document in DOCUMENTS:
        for pair in _LINK.findall(text_of(document)):
            for target in pair:
                if target and "://" not in target:
                    place = (ROOT / document).parent / target.partition("#")[0]
                    linked.add(place.resolve().as_posix())
    # How-to pages come and go; the parts that are read in order must not be lost.
    parts = ("docs/tutorial", "docs/glossary", "docs/explanation/", "docs/reference/")
    unreached = [
        name
        for name in DOCUMENTS
        if name.startswith(parts) and (ROOT / name).as_posix() not in linked
    ]
    assert unreached == []
