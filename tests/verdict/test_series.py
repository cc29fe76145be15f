"""The series for drawing stays bounded and keeps every peak."""

from __future__ import annotations

import pytest

from orchestrator.runlog.telemetry import decode_record
from orchestrator.verdict.judge import judge
from orchestrator.verdict.series import MAX_BUCKETS, MAX_THERMAL_SPANS, Series, SeriesBuilder
from tests.verdict.host_side import case_of, encode, judged
from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import LAUNCH, MIB


def sample(t_ns: int, footprint: int, tokens_total: int = 0, **fields: object) -> bytes:
    row = {
        **App().sample_fields(),
        "launch": LAUNCH,
        "seq": 1,
        "t_ns": t_ns,
        "kind": "sample",
        "footprint": footprint,
        "tokens_total": tokens_total,
        **fields,
    }
    return encode([row])[0]


def drawn(lines: list[bytes]) -> Series:
    builder = SeriesBuilder()
    for line in lines:
        builder.observe(decode_record(line))
    return builder.finish()


def test_a_run_draws_its_rows_footprint_speed_and_marks() -> None:
    app = App()
    series = judge(case_of(), encode(app.run())).series
    assert max(bucket.high for bucket in series.rows) == 64
    assert min(bucket.low for bucket in series.footprint_bytes) >= 100 * MIB
    assert series.tokens_per_s
    assert series.count("trim") == series.predicted_trims == app.counts["trim"]
    assert series.count("evict") == app.counts["evict"]
    assert series.count("memory_warning") == app.warnings
    assert series.count("launch") == 1
    assert [mark.start_s for mark in series.marks] == sorted(m.start_s for m in series.marks)


def test_trims_that_leave_the_schedule_are_told_from_those_that_were_predicted() -> None:
    class Never(App):
        def must_trim(self, k: int) -> bool:
            return False

    class Early(App):
        def must_trim(self, k: int) -> bool:
            return len(self.context) + k > self.spec.budget - 8

    never = judged(Never()).series
    assert never.count("trim") == 0
    assert never.predicted_trims == never.count("trim_missing") > 0
    early = judged(Early()).series
    undue = early.count("trim_unexpected")
    assert undue > 0
    assert early.predicted_trims == early.count("trim") - undue


@pytest.mark.parametrize("hours", [1, 12, 1000])
def test_any_length_fits_and_keeps_its_peak(hours: int) -> None:
    step_ns = hours * 3600 * 1_000_000_000 // 6000
    lines = [sample(place * step_ns, 5000 if place == 4321 else 1000) for place in range(6000)]
    series = drawn(lines)
    assert MAX_BUCKETS // 2 <= len(series.footprint_bytes) <= MAX_BUCKETS
    assert max(bucket.high for bucket in series.footprint_bytes) == 5000
    assert min(bucket.low for bucket in series.footprint_bytes) == 1000


def test_a_clock_that_jumps_is_drawn_where_the_run_stands() -> None:
    series = drawn([sample(10**9, 1), sample(-(1 << 62), 2), sample((1 << 62), 3)])
    assert len(series.footprint_bytes) <= MAX_BUCKETS
    assert {bucket.high for bucket in series.footprint_bytes} == {2, 3}


def test_speed_is_tokens_over_the_time_between_samples() -> None:
    series = drawn([sample(0, 1), sample(2_000_000_000, 1, tokens_total=500)])
    assert [bucket.high for bucket in series.tokens_per_s] == [250.0]


def test_samples_beside_each_other_give_no_speed() -> None:
    close = [sample(0, 1), sample(1_000_000, 1), sample(2_000_000_000, 1, tokens_total=500)]
    assert [bucket.high for bucket in drawn(close).tokens_per_s] == [250.0]


def test_ballast_is_taken_off_and_the_battery_is_kept() -> None:
    series = drawn([sample(0, 1000, ballast=400, peak=1500, battery_percent=71.0)])
    assert [bucket.high for bucket in series.own_bytes] == [600.0]
    assert [bucket.high for bucket in series.peak_bytes] == [1500.0]
    assert [bucket.low for bucket in series.battery_percent] == [71.0]


def test_thermal_states_are_kept_where_they_change() -> None:
    states = ("nominal", "nominal", "fair", "nominal")
    series = drawn([sample(n * 10**9, 1, thermal=state) for n, state in enumerate(states)])
    assert [(span.start_s, span.state) for span in series.thermal] == [
        (0.0, "nominal"),
        (2.0, "fair"),
        (3.0, "nominal"),
    ]


def test_thermal_changes_beyond_the_bound_are_counted() -> None:
    states = [str(n) for n in range(MAX_THERMAL_SPANS + 7)]
    series = drawn([sample(n * 10**9, 1, thermal=state) for n, state in enumerate(states)])
    assert (len(series.thermal), series.thermal_left_out) == (MAX_THERMAL_SPANS, 7)


def test_no_mark_is_lost_in_any_length() -> None:
    app = App()
    app.begin()
    for _ in range(9000):
        app.t_ns += 10**9
        app.warn()
    series = drawn(encode(app.records))
    assert series.count("memory_warning") == 9000
    assert len(series.marks) <= MAX_BUCKETS + 1
