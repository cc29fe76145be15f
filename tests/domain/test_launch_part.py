"""Parts of a soak over several launches: they add up, and each launch is asked for its own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.launch_part import (
    MOST_RELAUNCHES,
    launch_part,
    relaunches_of,
    scenario_for,
)


@given(st.integers(1, 10**9), st.integers(0, MOST_RELAUNCHES))
def test_tokens_add_up_and_differ_by_one_at_most(tokens: int, relaunches: int) -> None:
    parts = [
        launch_part(60.0, tokens, relaunches, number).stop_after_tokens or 0
        for number in range(1, relaunches + 2)
    ]
    assert sum(parts) == tokens
    assert max(parts) - min(parts) <= 1


def test_a_launch_is_asked_for_its_part_and_never_told_of_the_others() -> None:
    scenario = {
        "name": "x",
        "duration_s": 9.0,
        "stop_after_tokens": None,
        "relaunches": {"count": 2},
    }
    assert scenario_for(scenario, 3) == {"name": "x", "duration_s": 3.0, "stop_after_tokens": None}


def test_a_scenario_of_one_launch_is_sent_as_it_is() -> None:
    scenario = {"name": "x", "duration_s": 9.0, "stop_after_tokens": 5}
    assert scenario_for(scenario, 1) == scenario
    assert relaunches_of(scenario) == 0
