"""`fleet plan`: a dry run."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from orchestrator.cli.soak_options import (
    ConfigOption,
    DevicesOption,
    DurationOption,
    ScenarioOption,
    SeedOption,
    SettingsOption,
    config_in_use,
    duration_seconds,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.cli.planning import PlannedSoak
    from orchestrator.soak.forecast import Forecast

app = typer.Typer(rich_markup_mode=None)

_WIDTH: Final = 80
_SHOWN_TRIMS: Final = 5


@app.command()
def plan(
    devices: DevicesOption = "all",
    virtual: Annotated[
        bool, typer.Option("--virtual", help="For the virtual phones that a run would start.")
    ] = False,
    duration: DurationOption = None,
    scenario: ScenarioOption = None,
    config: ConfigOption = None,
    settings: SettingsOption = None,
    seed: SeedOption = 1,
    json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    include_unlisted: Annotated[
        bool, typer.Option("--include-unlisted", help="Also other models and older iOS.")
    ] = False,
) -> None:
    """Say what a soak would do, without touching a phone: who, how long, what is asserted.

    Trims are predicted from the prompts and the nonce that the run would have, for the first
    10,000 tokens of each phone. Examples: fleet plan --virtual; fleet plan --scenario nightly
    """
    import anyio

    from orchestrator.cli.compose import SoakOptions
    from orchestrator.cli.planning import planned

    options = SoakOptions(
        devices=devices,
        virtual=virtual,
        duration_s=duration_seconds(duration),
        scenario=scenario,
        output=Path("runs"),
        config=config_in_use(config),
        settings=tuple(settings or ()),
        seed=seed,
        include_unlisted=include_unlisted,
    )
    found = anyio.run(planned, options)
    if json:
        _print_json(found)
        return
    for line in _lines(found):
        print("".join(char if char.isprintable() else " " for char in line))


def _lines(found: PlannedSoak) -> Iterator[str]:
    from orchestrator.report.pages.scenarios import duration_text, exercise_text

    scenario = found.scenario
    yield f"scenario {scenario.name}: {scenario.title}"
    yield (
        f"  {duration_text(scenario.duration_s)} of inference per phone, all phones side by side;"
        f" over after {_clock(found.longest_s)} at the latest"
    )
    if scenario.relaunches:
        yield f"  in {scenario.relaunches + 1} launches; what is predicted is of the first"
    yield f"  at least: {exercise_text(scenario)}"
    yield from _wrapped("  must hold: ", scenario.required_checks)
    yield from _app_lines(found)
    yield f"phones: {len(found.participants.phones)}"
    for phone in found.participants.phones:
        expected = found.expected[phone.udid]
        yield (
            f"  {phone.alias}  {phone.model}  iOS {phone.os}  {expected.memory_class}"
            f"  {expected.quantization}  budget {expected.budget_tokens} tokens"
        )
        yield from _forecast_lines(found.forecasts.get(phone.udid))
    for skipped in found.participants.skipped:
        yield f"  not {skipped.phone.alias}: {skipped.reason}"
    for absence in found.participants.absent:
        yield f"  missing {absence.alias}: {absence.reason}; the run would exit 4"


def _clock(seconds: float) -> str:
    hours, minutes = divmod(math.ceil(seconds / 60), 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min"


def _app_lines(found: PlannedSoak) -> Iterator[str]:
    """Say where the app would not be the Swift one: a virtual phone on a host without Swift."""
    import shutil
    import sys

    from orchestrator.domain.toolchain import how_to_get_swift

    virtual = all(phone.virtual for phone in found.participants.phones)
    if not virtual or shutil.which("swift") is not None:
        return
    yield "app: the Python stand-in, because there is no Swift on PATH"
    yield f"  to get Swift: {how_to_get_swift(sys.platform)}"
    if found.scenario.needs_swift:
        yield f"  it does not play {found.scenario.name}: the run would exit 5"


def _forecast_lines(one: Forecast | None) -> Iterator[str]:
    if one is None:
        yield "      trims not predicted: only a witness engine's tokens are known beforehand"
        return
    span = (
        f"in about {one.tokens} tokens, the whole soak"
        if one.whole
        else f"in the first {one.tokens} tokens"
    )
    shown = ", ".join(str(at) for at in one.trims[:_SHOWN_TRIMS])
    more = ", ..." if len(one.trims) > _SHOWN_TRIMS else ""
    where = f", after {shown}{more}" if one.trims else ""
    yield f"      {len(one.trims)} trims predicted {span}{where}"
    if one.exact_until is not None and one.exact_until < one.tokens:
        yield f"      exact to token {one.exact_until}: then it is the kernel that warns"
    if one.refused:
        yield f"      {one.refused} of {one.turns} prompts are over the budget and refused"


def _wrapped(label: str, words: tuple[str, ...]) -> list[str]:
    text = label + ", ".join(words)
    indent = " " * len(label)
    return textwrap.wrap(text, _WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def _as_dict(one: Forecast | None) -> dict[str, object] | None:
    from dataclasses import asdict

    return None if one is None else asdict(one)


def _print_json(found: PlannedSoak) -> None:
    import json
    from dataclasses import asdict

    import msgspec

    document = {
        "scenario": found.scenario.name,
        "duration_s": found.scenario.duration_s,
        "longest_s": found.longest_s,
        "required_checks": found.scenario.required_checks,
        "min_trims": found.scenario.min_trims,
        "min_evictions": found.scenario.min_evictions,
        "phones": [
            {
                "udid": phone.udid,
                "alias": phone.alias,
                "model": phone.model,
                "os": phone.os,
                "expected": msgspec.to_builtins(found.expected[phone.udid]),
                "forecast": _as_dict(found.forecasts.get(phone.udid)),
            }
            for phone in found.participants.phones
        ],
        "skipped": [
            {"alias": entry.phone.alias, "reason": entry.reason}
            for entry in found.participants.skipped
        ],
        "absent": [asdict(absence) for absence in found.participants.absent],
    }
    print(json.dumps(document, indent=2))
