from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from orchestrator.soak.host_load import host_load
from orchestrator.soak.window_end import next_occurrence

EVENING = datetime(2026, 3, 1, 22, 15, 30, tzinfo=timezone(timedelta(hours=2)))


def test_a_time_that_is_over_today_means_tomorrow() -> None:
    assert next_occurrence("06:30", EVENING) == datetime(2026, 3, 2, 4, 30, tzinfo=UTC)


def test_a_time_that_is_to_come_means_today() -> None:
    assert next_occurrence("22:16", EVENING) == datetime(2026, 3, 1, 20, 16, tzinfo=UTC)


def test_this_very_minute_means_tomorrow() -> None:
    assert next_occurrence("22:15", EVENING).day == 2


@pytest.mark.parametrize("text", ["", "25:00", "6.30", "06:30:00", "noon"])
def test_what_is_no_time_of_day_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        next_occurrence(text, EVENING)


def test_the_host_tells_its_load_and_memory() -> None:
    facts = host_load()
    assert facts["own_peak_bytes"] > 1 << 20
    assert {"load_1m", "cpu_count", "own_cpu_s"} <= set(facts)
