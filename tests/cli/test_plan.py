"""What `fleet plan` prints, apart from finding phones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from orchestrator.cli.compose import SoakOptions
from orchestrator.cli.plan import _clock, _lines, _print_json
from orchestrator.cli.planning import PlannedSoak, planned

OPTIONS = SoakOptions(
    devices="vp-01,vp-04",
    virtual=True,
    duration_s=20.0,
    scenario="budget-edge",
    output=Path("runs"),
    config=None,
    settings=(),
    seed=1,
    include_unlisted=False,
)


@pytest.fixture(scope="module")
def plan() -> PlannedSoak:
    return anyio.run(planned, OPTIONS)


def test_only_the_phones_that_are_meant_are_planned(plan: PlannedSoak) -> None:
    text = "\n".join(_lines(plan))
    assert "phones: 2" in text
    assert "vp-01  iPhone 14  iOS 18.5  6gb  int4  budget 512 tokens" in text
    assert "vp-02" not in text
    assert ", the whole soak, after 18, 96, 97, 192, 193, ...\n" in text
    assert "prompts are over the budget and refused" in text


def test_a_budget_above_the_models_capacity_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ("policy.scenario_budget_tokens=8000", "policy.budget_tokens.6gb=9000")
    anyio.run(planned, replace(OPTIONS, settings=settings))
    said = capsys.readouterr().err
    assert "the token budget of 6gb phones, 8,000, is above" in said
    assert "lowered to 4,096" in said


@pytest.mark.parametrize(
    ("seconds", "text"), [(59.0, "1 min"), (3599.0, "1 h 00 min"), (15_420.0, "4 h 17 min")]
)
def test_the_latest_end_is_told_in_hours_and_minutes(seconds: float, text: str) -> None:
    assert _clock(seconds) == text


def test_without_a_witness_no_trim_is_predicted(
    plan: PlannedSoak, capsys: pytest.CaptureFixture[str]
) -> None:
    blind = replace(plan, forecasts={})
    text = "\n".join(_lines(blind))
    assert text.count("trims not predicted") == 2
    assert "trims predicted" not in text
    _print_json(blind)
    assert '"forecast": null' in capsys.readouterr().out
