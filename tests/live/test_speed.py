"""Speed of decoding: over the latest seconds, its trend, its course, in bounded memory."""

from __future__ import annotations

import pytest

from orchestrator.live.speed import CELLS, Speed

NS = 10**9


def decoded(speed: Speed, from_s: float, to_s: float, rate: float) -> None:
    step_ns = int(NS / rate)
    for at_ns in range(int(from_s * NS), int(to_s * NS), step_ns):
        speed.on_tokens([at_ns], [at_ns + step_ns])


def test_pauses_do_not_make_a_phone_slow() -> None:
    speed = Speed()
    decoded(speed, 0, 3, 50)
    decoded(speed, 8, 9, 50)
    assert speed.tokens_per_s() == pytest.approx(50, rel=0.01)


def test_a_slowdown_shows_against_the_minute_before() -> None:
    speed = Speed()
    decoded(speed, 0, 40, 50)
    assert speed.trend() == pytest.approx(0, abs=0.01)
    decoded(speed, 40, 50, 25)
    assert speed.trend() == pytest.approx(-0.5, abs=0.01)


def test_there_is_no_trend_before_there_is_enough_to_compare() -> None:
    speed = Speed()
    decoded(speed, 0, 12, 50)
    assert speed.trend() is None


def test_eight_hours_take_as_many_cells_as_a_minute() -> None:
    speed = Speed()
    for hour_s in range(0, 8 * 3600, 60):
        decoded(speed, hour_s, hour_s + 1, 20)
    assert len(speed.cells()) <= 2 * CELLS
    assert speed.cells()[0] == pytest.approx(20, rel=0.05)


@pytest.mark.parametrize(
    ("start", "end"), [([], []), ([5], [3]), ([0], [2**63]), ([-(2**63)], [-5]), ([1, 2], [3])]
)
def test_any_numbers_of_a_phone_are_survived(start: list[int], end: list[int]) -> None:
    speed = Speed()
    speed.on_tokens(start, end)
    assert len(speed.cells()) <= 2 * CELLS
