from __future__ import annotations

from orchestrator.report.timeline import HEIGHT, MAX_MARKS, WIDTH, draw
from orchestrator.verdict.series import Bucket
from tests.report.results import MARKS, mark, track


def points(band: str) -> list[tuple[float, float]]:
    pairs = (pair.split(",") for pair in band.split())
    return [(float(x), float(y)) for x, y in pairs]


def test_nothing_measured_gives_no_timeline() -> None:
    assert draw([], MARKS) is None
    assert draw([track(buckets=())], MARKS) is None


def test_the_band_goes_forth_over_the_highs_and_back_over_the_lows() -> None:
    drawn = draw([track()], ())
    assert drawn is not None
    corners = points(drawn.panels[0].band)
    assert [x for x, _ in corners] == [0.0, WIDTH, WIDTH, 0.0]
    heights = [y for _, y in corners]
    assert heights[0] < heights[3]  # the high of the first bucket lies above its low
    assert heights[1] < heights[0]  # and the footprint rose


def test_the_bound_lies_above_readings_that_keep_it() -> None:
    drawn = draw([track()], ())
    assert drawn is not None
    (panel,) = drawn.panels
    assert panel.bound_y is not None
    assert 0 < panel.bound_y < min(y for _, y in points(panel.band))


def test_a_reading_beyond_the_bound_lies_above_it_and_inside_the_panel() -> None:
    drawn = draw([track(bound=1500.0)], ())
    assert drawn is not None
    (panel,) = drawn.panels
    heights = [y for _, y in points(panel.band)]
    assert panel.bound_y is not None
    assert 0 < min(heights) < panel.bound_y < HEIGHT


def test_the_text_alternative_tells_the_numbers() -> None:
    drawn = draw([track()], ())
    assert drawn is not None
    assert drawn.panels[0].description == (
        "Footprint: lowest 900, highest 2,000, last 2,000 MiB; limit 3,376 MiB"
    )


def test_marks_stand_at_their_times() -> None:
    drawn = draw([track()], MARKS)
    assert drawn is not None
    assert [(mark.kind, mark.x) for mark in drawn.marks] == [
        ("trim", WIDTH * 0.2),
        ("evict", WIDTH * 0.4),
        ("memory_warning", WIDTH * 0.38),
    ]


def test_many_marks_are_thinned_and_counted() -> None:
    many = [mark(at_s / 1000) for at_s in range(10 * MAX_MARKS + 1)]
    drawn = draw([track()], many, 5)
    assert drawn is not None
    assert len(drawn.marks) <= MAX_MARKS
    assert len(drawn.marks) + drawn.marks_left_out == len(many) + 5


def test_readings_of_nothing_but_zero_still_draw() -> None:
    drawn = draw([track(buckets=(Bucket(0.0, 0.0, 0.0),), bound=None)], ())
    assert drawn is not None
    assert drawn.panels[0].bound_y is None
    assert set(points(drawn.panels[0].band)) == {(0.0, float(HEIGHT))}
