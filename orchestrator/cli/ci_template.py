"""`fleet ci-template`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)


class System(StrEnum):
    """For which there is a file."""

    GITHUB = "github"
    GITLAB = "gitlab"
    BUILDKITE = "buildkite"


@app.command()
def ci_template(
    system: Annotated[System, typer.Argument(help="github, gitlab or buildkite.")],
    config: Annotated[Path | None, typer.Option(help="Its `expect:` gets a job each.")] = None,
    duration: Annotated[str, typer.Option(help="Inference time per phone.")] = "8h",
) -> None:
    """Print a nightly job for a CI system: a job per expected phone, artefacts, summary.

    Example: fleet ci-template github > .github/workflows/soak.yml
    """
    from orchestrator.cli.ci_recipes import recipe
    from orchestrator.cli.soak_options import config_in_use
    from orchestrator.config.fields import parse_duration
    from orchestrator.config.load import load_config
    from orchestrator.domain.errors import UsageError

    try:
        parse_duration(duration)
    except ValueError as error:
        raise UsageError(f"--duration: {error}") from error
    loaded = load_config(config_in_use(config))
    print(recipe(system, [phone.alias for phone in loaded.expect], duration), end="")
