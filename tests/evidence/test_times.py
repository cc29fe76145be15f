from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.evidence.times import first_certain, parse_time
from tests.evidence.factory import FIXTURES, FUZZ

TIMES: dict[str, str | None] = json.loads((FIXTURES / "timestamps.json").read_text())


@pytest.mark.parametrize("text", TIMES)
def test_known_times_turn_into_utc_and_naive_ones_are_marked(text: str) -> None:
    expected, time = TIMES[text], parse_time(text)
    if expected is None:
        assert time is None
    elif expected.startswith("naive"):
        assert time is not None
        assert time.naive
        assert time.unix_s is None
    else:
        assert time is not None
        assert not time.naive
        assert time.utc == datetime.fromisoformat(expected)
        assert time.utc.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01 00:00:00 +1400",  # before year 1 in UTC
        "9999-12-31 23:59:59 -1400",
        "2026-01-10 01:18:15 +9900",
        "٢٠٢٦-01-10 01:18:15 +0000",  # digits, but no ASCII ones
        "2026-01-10 01:18:15.51 +0800 and more",
        None,
        17,
        ["2026-01-10T01:18:15Z"],
    ],
)
def test_what_is_no_time_gives_none(text: object) -> None:
    assert parse_time(text) is None


def test_a_time_with_a_zone_is_preferred_to_an_earlier_naive_one() -> None:
    time = first_certain("2026-01-10 01:00:00", "2026-01-10 02:00:00 +0000")
    assert time is not None
    assert time.utc == datetime(2026, 1, 10, 2, tzinfo=UTC)


def test_a_naive_time_is_better_than_none() -> None:
    time = first_certain(None, "2026-01-10 01:00:00")
    assert time is not None
    assert time.naive


@FUZZ
@given(st.text())
def test_no_text_raises(text: str) -> None:
    parse_time(text)
