"""`fleet config`: look at `fleet.yaml` without touching a phone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.domain.errors import ConfigError, FleetError, UsageError
from orchestrator.domain.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.config.model import FleetConfig

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True)

DEFAULT_FILE = Path("fleet.yaml")


@app.callback()
def config() -> None:
    """Check `fleet.yaml`, or show what a run would use; no phone is touched.

    Example: fleet config check
    """


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="The configuration.")] = DEFAULT_FILE,
) -> None:
    """Say everything that is wrong with a configuration, with file, line and column.

    Exits 0 where nothing is, else 2. Examples: fleet config check; fleet config check lab.yaml
    """
    from orchestrator.config.load import config_errors, load_config, place_in

    mistakes: list[FleetError] = list(config_errors(file))
    if not mistakes:
        mistakes = [
            ConfigError(place.file, str(error), line=place.line, column=place.column)
            for key, error in _unusable(load_config(file))
            for place in [place_in(file, key)]
        ]
    for mistake in mistakes:
        print("".join(char if char.isprintable() else " " for char in str(mistake)))
    if mistakes:
        sys.exit(ExitCode.USAGE)
    print(f"{file}: in order")


@app.command()
def show(
    file: Annotated[Path | None, typer.Argument(help="The configuration.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Override a key: --set workload.x=5.")
    ] = None,
) -> None:
    """Print the configuration that a run would use, defaults and --set included, as YAML.

    Example: fleet config show --set scenario=nightly
    """
    from orchestrator.config.load import load_config
    from orchestrator.config.resolved import resolved_yaml

    chosen = file or (DEFAULT_FILE if DEFAULT_FILE.exists() else None)
    print(resolved_yaml(load_config(chosen, settings or ())), end="")


def _unusable(config: FleetConfig) -> Iterator[tuple[str, FleetError]]:
    """Yield what a soak would refuse although every key is in order, with the block it is in."""
    from orchestrator.cli.refusals import refuse_unknown_defect
    from orchestrator.config.scenario import scenario_of
    from orchestrator.config.scenario_catalog import SCENARIOS
    from orchestrator.verdict.catalog import unknown_limit
    from orchestrator.virtual.faults.engine import scripted

    def script() -> None:
        for fault in config.virtual.faults:
            scripted(fault.model_dump())

    def limits() -> None:
        mistake = unknown_limit(config.checks)
        if mistake is not None:
            raise UsageError(mistake, remedy="`fleet explain CHECK` lists its limits")

    def scenario() -> None:
        scenario_of(config.scenario, config.workload, None)

    in_workload = config.scenario in SCENARIOS  # then it is the overrides that contradict it
    for key, test in (
        ("workload" if in_workload else "scenario", scenario),
        ("harness.defect", lambda: refuse_unknown_defect(config.harness.defect)),
        ("virtual.faults", script),
        ("checks", limits),
    ):
        try:
            test()
        except FleetError as error:
            yield key, error
