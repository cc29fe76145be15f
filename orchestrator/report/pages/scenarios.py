"""What the scenarios are, in words: made of the values that a run is planned with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.config.scenario_catalog import SCENARIOS
from orchestrator.report.pages.page import Page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.config.workload import Scenario

SCENARIO_KIND: Final = "scenario"
_HOUR_S: Final = 3600
_MINUTE_S: Final = 60


def scenario_pages() -> tuple[Page, ...]:
    """Return the page of every scenario."""
    return tuple(_page(scenario) for scenario in SCENARIOS.values())


def duration_text(seconds: float) -> str:
    """Return a duration as `--duration` takes it: `45s`, `30m`, `8h`."""
    for unit_s, unit in ((_HOUR_S, "h"), (_MINUTE_S, "m")):
        if seconds >= unit_s and seconds % unit_s == 0:
            return f"{seconds / unit_s:g}{unit}"
    return f"{seconds:g}s"


def exercise_text(scenario: Scenario) -> str:
    """Return what a phone must at least have shown, else it is ERROR."""
    parts = [f"{scenario.min_trims} trims"]
    if scenario.min_evictions:
        noun = "eviction" if scenario.min_evictions == 1 else "evictions"
        parts.append(f"{scenario.min_evictions} {noun} by the kernel's warning")
    return ", ".join(parts)


def _page(scenario: Scenario) -> Page:
    return Page(
        SCENARIO_KIND,
        scenario.name,
        scenario.title,
        scenario.purpose,
        (),
        (
            f"`fleet plan --scenario {scenario.name}` shows what would happen on your phones",
            f"`fleet soak --scenario {scenario.name}` runs it",
        ),
        tuple(_facts(scenario)),
        heading="What it does",
    )


def _facts(scenario: Scenario) -> Iterator[tuple[str, str]]:
    yield "Inference time", duration_text(scenario.duration_s)
    lengths = f"{scenario.min_prompt_ids} to {scenario.max_prompt_ids} ids"
    yield "Prompts", f"{lengths}, at most {scenario.turn_limit_tokens} tokens a turn"
    if scenario.relaunches:
        yield "Launches", f"{scenario.relaunches + 1}, each for an equal part of the time"
    if scenario.budget_tokens is not None:
        yield "Budget", f"{scenario.budget_tokens} tokens on every phone"
    yield "Minimum exercise", exercise_text(scenario)
    yield "Required checks", ", ".join(scenario.required_checks)
    if scenario.needs_swift:
        yield "App", "the Swift app; the Python stand-in app does not play it"
