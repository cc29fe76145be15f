"""`fleet model`: a group that imports a command's module when the command is called."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

import typer
from typer.core import TyperGroup

from orchestrator.cli.main import LightGroup, dress

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

# Command: its module, what it does. Reading needs no library; making needs the extra `[models]`.
COMMANDS: Final = {
    "inspect": ("model_inspect", "Say what a package holds: states, KV bytes, precisions."),
    "lint": ("model_lint", "Say what is known to break such a package on a phone."),
    "budget": ("model_budget", "Say which iPhone holds which context: the KV-cache ceiling."),
    "build": ("model_build", "Build a stateful package from a preset."),
    "verify": ("model_verify", "Execute a saved package against an independent forward."),
    "compress": ("model_compress", "Compress your own package to 4 or 8 bits."),
    "tokens": ("model_tokens", "Tokenize on the host; export the id-to-bytes table."),
}


class ModelGroup(LightGroup):
    """Holds the commands by name only, until one is called."""

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: D102 - of the base
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:  # noqa: D102
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"orchestrator.cli.{COMMANDS[cmd_name][0]}")
        command = typer.main.get_command(module.app)
        dress(command)
        if isinstance(command, TyperGroup):
            return command.get_command(ctx, cmd_name)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: D102
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


app = typer.Typer(cls=ModelGroup, add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def model() -> None:
    """Core ML packages with state: read them, judge them, make them.

    Example: fleet model lint Model.mlpackage
    """
