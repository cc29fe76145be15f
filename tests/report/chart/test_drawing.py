from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

import orchestrator.report
from orchestrator.report.chart.figure import NARROW, WIDE, drawn
from orchestrator.report.chart.palette import CLASSES
from orchestrator.verdict.series import Bucket, Mark
from tests.report.results import HOSTILE, MARKS, series, timeline, timeline_of_a_death

if TYPE_CHECKING:
    from orchestrator.report.timeline import Timeline

STYLE = (Path(orchestrator.report.__file__).parent / "templates" / "style.css").read_text()


def svg(**channels: object) -> ET.Element:
    values = timeline(**channels)
    assert values is not None
    return parsed(values)


def parsed(values: Timeline, title: str = "Timeline") -> ET.Element:
    return ET.fromstring(drawn(values, WIDE, name="chart-1", title=title))  # noqa: S314 - ours


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter("text")]


def heights_of(root: ET.Element, role: str) -> list[float]:
    """Return the heights of the longest line of a class; they grow downwards."""
    paths = [e.get("d", "") for e in root.iter("path") if role in e.get("class", "").split()]
    return [float(n) for n in re.findall(r"-?[\d.]+", max(paths, key=len))][1::2]


def test_every_panel_is_named_and_bounds_say_their_numbers() -> None:
    shown = texts(svg())
    for title in ("Memory, MiB", "Context, tokens", "Speed, tokens/s", "Battery, %"):
        assert title in shown
    for bound in ("limit 3,376", "allowed 2,701", "budget 1,024", "thermal state fair"):
        assert bound in shown
    assert {"predicted", "trims", "evictions", "warnings"} <= set(shown)


def test_a_panel_without_readings_is_not_drawn() -> None:
    shown = texts(svg(battery_percent=(), tokens_per_s=()))
    assert "Battery, %" not in shown
    assert "Speed, tokens/s" not in shown


def test_a_spike_of_one_reading_reaches_its_height() -> None:
    calm = tuple(Bucket(n / 20, 1e9, 1e9) for n in range(2000))
    spike = (*calm[:1234], Bucket(1234 / 20, 1e9, 3.3e9), *calm[1235:])
    highest_calm = min(heights_of(svg(footprint_bytes=calm), "s-blue"))
    highest = min(heights_of(svg(footprint_bytes=spike), "s-blue"))
    assert highest < highest_calm - 50


def test_it_is_an_image_with_a_name_and_a_description() -> None:
    root = svg()
    assert root.get("role") == "img"
    labels = {root.find(tag).get("id"): root.find(tag) for tag in ("title", "desc")}  # type: ignore[union-attr]
    assert set((root.get("aria-labelledby") or "").split()) == set(labels)
    assert "footprint at most 1,907.3 MiB" in (root.findtext("desc") or "")


def test_colours_are_attributes_that_classes_of_the_style_sheet_override() -> None:
    marks = (Mark(5.0, "trim_missing", 1), Mark(6.0, "trim_unexpected", 1), *MARKS)
    values = timeline_of_a_death()
    root = parsed(replace(values, series=series(marks=marks)))
    assert not any("style" in element.attrib for element in root.iter())
    colored = [e for e in root.iter() if e.get("stroke", "none").startswith("#")]
    assert colored
    known = {f"{key}-{name}" for key in "fs" for name in CLASSES.values()}
    used = {name for e in root.iter() for name in e.get("class", "").split()}
    assert used <= known
    assert all(f".{name} {{" in STYLE for name in used)


def test_two_drawings_on_a_page_share_no_name() -> None:
    values = timeline()
    assert values is not None
    names = [
        re.findall(r' id="([^"]+)"', drawn(values, form, name=name, title="x"))
        for form, name in ((WIDE, "chart-1"), (NARROW, "chart-1"), (WIDE, "chart-2"))
    ]
    everything = [name for each in names for name in each]
    assert len(everything) == len(set(everything))


def test_equal_values_give_equal_bytes() -> None:
    values = timeline()
    assert values is not None
    first, second = (drawn(values, NARROW, name="c", title="t") for _ in range(2))
    assert first == second


@pytest.mark.parametrize("title", [HOSTILE, "$x$ $\\frac{1}{0}$", "".join(map(chr, range(32)))])
def test_hostile_titles_are_text(title: str) -> None:
    root = parsed(timeline_of_a_death(), title)
    assert root.find("script") is None
    assert "\x1b" not in (root.findtext("title") or "")


@pytest.mark.parametrize("span_s", [0.0, 3.0, 45.0, 5000.0, 86_400.0, 30 * 86_400.0])
def test_any_span_has_a_readable_axis_of_time(span_s: float) -> None:
    shown = [text for text in texts(svg(end_s=span_s)) if re.fullmatch(r"[\d.]+ (s|min|h)", text)]
    assert len(shown) <= WIDE.time_steps + 1
    assert len(shown) == len(set(shown))


def test_readings_of_nothing_but_zero_still_draw() -> None:
    zero = (Bucket(0.0, 0.0, 0.0),)
    channels = ("footprint_bytes", "own_bytes", "peak_bytes", "rows", "tokens_per_s")
    assert texts(svg(end_s=0.0, marks=(), **dict.fromkeys(channels, zero)))
