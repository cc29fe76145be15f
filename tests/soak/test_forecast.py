"""What is predicted of a soak before it begins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pytest

from orchestrator.config.scenario_catalog import SCENARIOS
from orchestrator.config.workload import TimedWarning
from orchestrator.soak.forecast import MOST_TOKENS, Forecast, Vocabulary, forecast
from orchestrator.soak.plan import nonce_of

if TYPE_CHECKING:
    from orchestrator.config.workload import Scenario

WORDS = Vocabulary(first_id=2, vocab=32_000, end_id=0, bos_id=1)
EDGE = SCENARIOS["budget-edge"]
PHONE = nonce_of(1, "00008110-0002E4EB07BC02FE")


def of(scenario: Scenario = EDGE, **changes: Any) -> Forecast:  # noqa: ANN401 - any field
    return forecast(replace(scenario, **changes), 1, PHONE, 512, 1, WORDS)


def test_trims_are_in_order_and_within_what_was_simulated() -> None:
    found = of(duration_s=60.0)
    assert found.whole
    assert found.exact_until is None
    assert found.trims == sorted(found.trims)
    assert len(found.trims) > EDGE.min_trims
    assert found.trims[-1] <= found.tokens
    assert 0 < found.refused < found.turns


def test_equal_inputs_give_equal_forecasts_and_another_nonce_other_ends() -> None:
    assert of(duration_s=30.0) == of(duration_s=30.0)
    other = forecast(replace(EDGE, end_every=20), 1, "0" * 16, 512, 1, WORDS)
    assert other.trims != of(end_every=20).trims


def test_a_long_soak_is_simulated_in_part() -> None:
    found = of(duration_s=1e6)
    assert found.tokens == MOST_TOKENS
    assert not found.whole


def test_an_exact_end_by_tokens_is_kept() -> None:
    found = of(stop_after_tokens=333)
    assert (found.tokens, found.whole) == (333, True)


def test_a_budget_that_is_never_reached_has_no_trims() -> None:
    found = forecast(replace(EDGE, stop_after_tokens=50), 1, PHONE, 100_000, 1, WORDS)
    assert found.trims == []


def test_prompts_that_never_fit_end_the_forecast() -> None:
    found = forecast(EDGE, 1, PHONE, 64, 1, WORDS)
    assert (found.tokens, found.trims) == (0, [])
    assert found.refused == found.turns > 0


@pytest.mark.parametrize("phase", ["decode", "prefill", "idle"])
def test_a_warning_evicts_once_in_its_phase(
    phase: Literal["decode", "prefill", "idle"],
) -> None:
    warnings = (TimedWarning(40, phase),)
    found = of(timed_warnings=warnings, stop_after_tokens=400)
    assert found.evictions == 1


def test_a_ramp_ends_what_is_exact() -> None:
    pressure = SCENARIOS["pressure"]
    found = of(pressure, stop_after_tokens=1000)
    assert found.exact_until == pressure.ballast[0].from_token
