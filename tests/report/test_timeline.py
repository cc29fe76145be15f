from __future__ import annotations

import pytest

from orchestrator.report.timeline import described, mark_times, thermal_spans, thinned
from orchestrator.verdict.series import Bucket, Mark, ThermalSpan
from tests.report.results import timeline, timeline_of_a_death


def words(**channels: object) -> dict[str, str]:
    drawn = timeline(**channels)
    assert drawn is not None
    return dict(described(drawn))


def test_nothing_measured_gives_no_timeline() -> None:
    assert timeline(footprint_bytes=(), rows=(), tokens_per_s=()) is None


def test_the_allowance_is_the_limit_less_the_headroom() -> None:
    drawn = timeline()
    assert drawn is not None
    assert drawn.limit_bytes is not None
    assert drawn.allowed_bytes == int(drawn.limit_bytes * 0.8)


@pytest.mark.parametrize("place", [0, 1, 777, 1999])
def test_thinning_never_loses_a_spike(place: int) -> None:
    buckets = [Bucket(float(n), 10.0, 99.0 if n == place else 11.0) for n in range(2000)]
    columns = thinned(buckets, 2000.0, 120)
    assert len(columns) <= 120
    assert max(column.high for column in columns) == 99.0
    assert min(column.low for column in columns) == 10.0
    spiked = next(column for column in columns if column.high == 99.0)
    assert abs(spiked.start_s - place) <= 2000 / 120


def test_marks_keep_one_time_per_column() -> None:
    drawn = timeline(marks=tuple(Mark(n / 10, "trim", 1) for n in range(1000)))
    assert drawn is not None
    times = mark_times(drawn, "trim", 50)
    assert len(times) == 50
    assert times[0] == 0.0


def test_the_words_tell_every_panel() -> None:
    assert words() == {
        "Memory": (
            "footprint at most 1,907.3 MiB; 56% of the limit of 3,376.0 MiB;"
            " without ballast at most 953.7 MiB, 2,700.8 MiB are allowed"
        ),
        "Context": "at most 1,024 tokens of a budget of 1,024",
        "Trims": "1 predicted, 1 observed; 1 eviction; 1 memory warning",
        "Speed": "median 200.0 tokens/s, at most 200.0",
        "Thermal state": "nominal, fair",
        "Battery": "80 % at first, 71 % at last",
    }


def test_the_words_tell_trims_that_differ_from_the_prediction() -> None:
    marks = (Mark(1.0, "trim", 5), Mark(2.0, "trim_missing", 2), Mark(3.0, "trim_unexpected", 1))
    told = words(marks=marks)["Trims"]
    assert told.startswith("6 predicted, 5 observed; 2 missing; 1 not predicted")


def test_what_was_not_measured_is_not_told() -> None:
    assert set(words(footprint_bytes=(), battery_percent=(), tokens_per_s=(), thermal=())) == {
        "Context",
        "Trims",
    }


def test_a_death_is_told() -> None:
    told = described(timeline_of_a_death())
    assert ("End", "the app ended here, after 1 min 40 s") in told


def test_only_known_states_that_are_warmer_than_nominal_are_bands() -> None:
    states = ("nominal", "fair", "<script>", "critical")
    thermal = tuple(ThermalSpan(n * 10.0, state) for n, state in enumerate(states))
    drawn = timeline(thermal=thermal)
    assert drawn is not None
    assert list(thermal_spans(drawn)) == [(10.0, 20.0, "fair"), (30.0, 100.0, "critical")]
    assert words(thermal=thermal)["Thermal state"] == "nominal, fair, critical, unknown"
