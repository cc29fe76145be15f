"""Options that several commands have in common, and how their text is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from orchestrator.domain.errors import UsageError

_DEFAULT_CONFIG: Final = Path("fleet.yaml")

DevicesOption = Annotated[
    str, typer.Option(help="`all`, NAME,NAME..., or an expression: `ram_gb >= 8 and os >= 18.5`.")
]
DurationOption = Annotated[str | None, typer.Option(help="Inference time per phone: 60s, 30m, 8h.")]
ScenarioOption = Annotated[str | None, typer.Option(help="The scenario; default smoke.")]
ConfigOption = Annotated[
    Path | None, typer.Option(help="The configuration; default fleet.yaml where there is one.")
]
SettingsOption = Annotated[
    list[str] | None, typer.Option("--set", help="Override a key: --set workload.x=5.")
]
SeedOption = Annotated[int, typer.Option(min=0, max=2**64 - 1, help="Seed of prompts and nonces.")]


def config_in_use(given: Path | None) -> Path | None:
    """Return `--config`, else fleet.yaml where there is one."""
    return given or (_DEFAULT_CONFIG if _DEFAULT_CONFIG.exists() else None)


def duration_seconds(text: str | None) -> float | None:
    """Return the seconds of `--duration`; a text that is none is a UsageError."""
    from orchestrator.config.fields import parse_duration

    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--duration: {error}") from error
