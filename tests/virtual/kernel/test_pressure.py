from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.virtual.kernel.pressure import Action, PressureGauge, next_delay_s

LIMIT = 100_000_000


def actions(*readings: tuple[int, float]) -> list[Action]:
    gauge = PressureGauge(LIMIT)
    return [gauge.observe(percent * LIMIT // 100, at_s).action for percent, at_s in readings]


WARN, KILL, NONE = Action.WARN, Action.KILL, Action.NONE


def test_the_first_reading_at_92_percent_warns() -> None:
    assert actions((91, 0.0), (92, 0.1)) == [NONE, WARN]


def test_a_footprint_that_stays_high_is_warned_once_a_second() -> None:
    assert actions((92, 0.0), (93, 0.999), (93, 1.0), (93, 1.5), (99, 2.0)) == [
        WARN,
        NONE,
        WARN,
        NONE,
        WARN,
    ]


def test_a_footprint_that_trembles_around_the_threshold_is_not_warned_again() -> None:
    assert actions((92, 0.0), (85, 0.1), (92, 0.2), (90, 0.3), (92, 0.4)) == [
        WARN,
        NONE,
        NONE,
        NONE,
        NONE,
    ]


def test_below_85_percent_the_next_crossing_warns_at_once() -> None:
    assert actions((92, 0.0), (84, 0.1), (92, 0.2)) == [WARN, NONE, WARN]


def test_the_limit_kills_without_a_warning_when_the_growth_was_too_fast() -> None:
    assert actions((50, 0.0), (100, 0.1)) == [NONE, KILL]


def test_a_killed_process_is_neither_killed_nor_warned_again() -> None:
    assert actions((100, 0.0), (120, 0.1), (95, 5.0)) == [KILL, NONE, NONE]


def test_a_limit_that_is_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match="limit_bytes"):
        PressureGauge(0)


@pytest.mark.parametrize(
    ("headroom_bytes", "delay_s"),
    [(1_000_000_000, 0.050), (20_000_000, 0.010), (1_000, 0.001), (-5_000_000, 0.001)],
)
def test_the_delay_shrinks_with_the_headroom(headroom_bytes: int, delay_s: float) -> None:
    assert next_delay_s(headroom_bytes) == pytest.approx(delay_s)


READINGS = st.lists(
    st.tuples(st.integers(0, 130), st.floats(0.0, 1.5)).map(lambda pair: pair), max_size=60
)


@given(READINGS)
def test_any_history_is_killed_at_most_once_and_exactly_at_its_first_reading_at_the_limit(
    steps: list[tuple[int, float]],
) -> None:
    gauge, now_s = PressureGauge(LIMIT), 0.0
    seen = []
    for percent, pause_s in steps:
        now_s += pause_s
        seen.append(gauge.observe(percent * LIMIT // 100, now_s).action)
    over = [index for index, (percent, _) in enumerate(steps) if percent >= 100]
    assert [index for index, action in enumerate(seen) if action is KILL] == over[:1]


@given(READINGS)
def test_two_warnings_are_a_second_apart_unless_memory_was_freed_between_them(
    steps: list[tuple[int, float]],
) -> None:
    gauge, now_s = PressureGauge(LIMIT), 0.0
    warnings: list[tuple[int, float]] = []
    for index, (percent, pause_s) in enumerate(steps):
        now_s += pause_s
        decision = gauge.observe(percent * LIMIT // 100, now_s)
        assert 0.001 <= decision.delay_s <= 0.050
        if decision.action is WARN:
            assert percent >= 92
            warnings.append((index, now_s))
    for (first, first_s), (second, second_s) in pairwise(warnings):
        was_freed = any(percent < 85 for percent, _ in steps[first:second])
        assert was_freed or second_s - first_s >= 1.0
