"""Slope and windows over a series, and what noise may do to them."""

from __future__ import annotations

import random

import pytest

from orchestrator.verdict.trend import MAX_POINTS, MIN_POINTS, Trace, Trend, trend_of


def trend(values: list[float]) -> Trend:
    found = trend_of([(float(x), y) for x, y in enumerate(values)])
    assert found is not None
    return found


def test_a_linear_creep_gives_its_slope_and_its_change() -> None:
    found = trend([100.0 + 2.0 * x for x in range(20)])
    assert found.slope == pytest.approx(2.0)
    assert found.change_by_slope == pytest.approx(38.0)
    assert found.grows_by(25.0)
    assert not found.grows_by(40.0)


def test_two_spikes_in_eight_points_do_not_move_the_slope() -> None:
    assert trend([1.0, 1.0, 90.0, 1.0, 1.0, 1.0, 70.0, 1.0]).slope == pytest.approx(0.0)


def test_too_few_points_have_no_trend() -> None:
    assert trend_of([(float(x), 1.0) for x in range(MIN_POINTS - 1)]) is None


def test_a_step_in_the_last_quarter_alone_is_not_agreed_on() -> None:
    found = trend([0.0] * 16 + [50.0] * 4)
    assert found.change > 40.0
    assert not found.grows_by(5.0)


def test_noise_alone_moves_in_one_series_of_a_hundred_at_most() -> None:
    draw = random.Random(3)
    series = [trend([draw.gauss(100.0, 5.0) for _ in range(12)]) for _ in range(300)]
    assert sum(found.grows_by(2.0) or found.falls_by(2.0) for found in series) <= 3


def test_a_fall_of_a_tenth_is_seen_through_small_noise() -> None:
    draw = random.Random(4)
    assert trend([100.0 - x / 2 + draw.gauss(0.0, 0.5) for x in range(40)]).falls_by(10.0)


def test_a_trace_keeps_few_points_of_the_whole_length() -> None:
    trace = Trace()
    for x in range(100_000):
        trace.add(float(x), float(x))
    assert len(trace.points) <= MAX_POINTS
    assert trace.points[0][0] < 1000
    assert trace.points[-1][0] > 95_000


def test_a_time_that_does_not_increase_is_left_out() -> None:
    trace = Trace()
    for x in (1.0, 1.0, 0.5, 2.0):
        trace.add(x, 0.0)
    assert [x for x, _ in trace.points] == [1.0, 2.0]
