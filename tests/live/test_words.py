"""Numbers in narrow columns."""

from __future__ import annotations

import pytest

from orchestrator.live import words
from tests.live.phones import phone


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"), (-1.0, "0s"), (59.9, "59s"), (95.0, "1m35"), (3599.0, "59m"),
        (11_520.0, "3h12"), (100 * 3600.0, "4d04"), (1e30, "99d00"),
    ],
)  # fmt: skip
def test_durations_have_at_most_five_characters(seconds: float | None, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, "-"), (0, "0M"), (812 * words.MIB, "812M"), (3 * words.GIB, "3.0G"), (2**62, "9999G")],
)
def test_sizes_have_at_most_five_characters(count: int | None, text: str) -> None:
    assert words.size(count) == text


def test_an_arrow_says_where_the_speed_goes() -> None:
    arrows = [words.speed(phone(trend=trend))[-1] for trend in (-0.1, 0.02, 0.1)]
    assert arrows == ["↘", "→", "↗"]


def test_a_battery_from_before_the_attempt_is_marked() -> None:
    assert words.battery(phone(battery_at_gate=True)) == "~87%"
    assert words.battery(phone(charging=True)) == "87%+"


def test_equal_speeds_are_a_level_line_and_a_drop_shows() -> None:
    assert words.sparkline([50.0] * 40, 8) == "█" * 8
    assert words.sparkline([60.0, 30.0, 0.0], 8) == "█▄▁"
    assert words.sparkline([], 8) == ""
