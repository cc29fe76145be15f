"""The series for drawing stays bounded and keeps every peak."""

from __future__ import annotations

import pytest

from orchestrator.runlog.telemetry import decode_record
from orchestrator.verdict.judge import judge
from orchestrator.verdict.series import MAX_BUCKETS, MAX_MARKS, Series, SeriesBuilder
from tests.verdict.host_side import case_of, encode
from tests.verdict.telemetry_factory import LAUNCH, MIB, App


def sample(t_ns: int, footprint: int, tokens_total: int = 0) -> bytes:
    row = {
        **App().sample_fields(),
        "launch": LAUNCH,
        "seq": 1,
        "t_ns": t_ns,
        "kind": "sample",
        "footprint": footprint,
        "tokens_total": tokens_total,
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
    assert min(bucket.low for bucket in series.footprint_bytes) >= 900 * MIB
    assert series.tokens_per_s
    kinds = [mark.kind for mark in series.marks]
    assert kinds.count("trim") == app.counts["trim"]
    assert kinds.count("evict") == app.counts["evict"]
    assert kinds.count("memory_warning") == app.warnings
    assert [mark.at_s for mark in series.marks] == sorted(mark.at_s for mark in series.marks)


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


def test_marks_beyond_the_bound_are_counted() -> None:
    app = App()
    app.begin()
    for _ in range(MAX_MARKS + 7):
        app.warn()
    series = drawn(encode(app.records))
    assert (len(series.marks), series.marks_left_out) == (MAX_MARKS, 7)
