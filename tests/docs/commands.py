"""Every command of `fleet`, as typer builds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from typer._click import Context

from orchestrator.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typer._click import Command


def root() -> Command:
    """`fleet` itself, without the options for completion, which hang on how this was started."""
    command = typer.main.get_command(app)
    command.params = [param for param in command.params if "completion" not in str(param.name)]
    return command


def walk(command: Command, path: tuple[str, ...] = ("fleet",)) -> Iterator[tuple[str, Command]]:
    """Yield a command and all below it, by what is typed."""
    yield " ".join(path), command
    lister = getattr(command, "list_commands", None)
    if lister is None:
        return
    context = Context(command)
    for name in lister(context):
        yield from walk(command.get_command(context, name), (*path, name))  # type: ignore[attr-defined]


def help_of(path: str, command: Command) -> str:
    """The text of `--help`, 80 columns wide."""
    context = Context(command, info_name=path, max_content_width=80, terminal_width=80)
    return command.get_help(context)
