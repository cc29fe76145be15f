"""Geometry of the timeline: tracks of low and high values to points of an SVG. Pure.

The page draws it with plain elements, so that texts are escaped like all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from orchestrator.verdict.series import Bucket, Mark

WIDTH: Final = 720
HEIGHT: Final = 120  # of one panel
_HEAD_SPACE: Final = 1.08  # the highest value stays below the panel's edge
MAX_MARKS: Final = 400  # a long soak trims thousands of times; the page stays readable


@dataclass(frozen=True, slots=True)
class Track:
    """One channel and the bound it must stay under."""

    title: str
    unit: str
    buckets: tuple[Bucket, ...]
    bound: float | None
    bound_name: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One track as geometry; y grows downwards from 0 to `HEIGHT`."""

    title: str
    description: str  # the text alternative
    band: str  # points of a polygon: highs forth, lows back
    bound_y: float | None
    bound_label: str
    top_label: str


@dataclass(frozen=True, slots=True)
class MarkLine:
    """One mark as geometry."""

    x: float
    kind: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """All panels of a phone over one axis of time."""

    panels: tuple[Panel, ...]
    marks: tuple[MarkLine, ...]
    marks_left_out: int
    span_s: float


def draw(
    tracks: Sequence[Track], marks: Sequence[Mark], marks_left_out: int = 0
) -> Timeline | None:
    """Return the timeline of a phone, None where nothing was measured.

    Args:
        tracks: One panel each, those without readings left out.
        marks: Vertical lines through all panels.
        marks_left_out: How many the series itself did not keep.
    """
    measured = [track for track in tracks if track.buckets]
    if not measured:
        return None
    ends = [track.buckets[-1].start_s for track in measured]
    span_s = max([*ends, *(mark.at_s for mark in marks), 1e-3])
    shown = _thinned(marks)
    return Timeline(
        panels=tuple(_panel(track, span_s) for track in measured),
        marks=tuple(MarkLine(_x(mark.at_s, span_s), mark.kind) for mark in shown),
        marks_left_out=marks_left_out + len(marks) - len(shown),
        span_s=span_s,
    )


def _thinned(marks: Sequence[Mark]) -> Sequence[Mark]:
    step = -(-len(marks) // MAX_MARKS) or 1
    return marks[::step]


def _panel(track: Track, span_s: float) -> Panel:
    lows, highs = [b.low for b in track.buckets], [b.high for b in track.buckets]
    top = max(*highs, track.bound or 0.0, 1e-9) * _HEAD_SPACE
    forth = [(b.start_s, b.high) for b in track.buckets]
    back = [(b.start_s, b.low) for b in reversed(track.buckets)]
    bound = "" if track.bound is None else f"{track.bound_name} {track.bound:,.0f} {track.unit}"
    return Panel(
        title=track.title,
        description=(
            f"{track.title}: lowest {min(lows):,.0f}, highest {max(highs):,.0f}, "
            f"last {highs[-1]:,.0f} {track.unit}" + (f"; {bound}" if bound else "")
        ),
        band=_points([*forth, *back], span_s, top),
        bound_y=None if track.bound is None else _y(track.bound, top),
        bound_label=bound,
        top_label=f"highest {max(highs):,.0f} {track.unit}",
    )


def _points(places: Iterable[tuple[float, float]], span_s: float, top: float) -> str:
    return " ".join(f"{_x(at_s, span_s)},{_y(value, top)}" for at_s, value in places)


def _x(at_s: float, span_s: float) -> float:
    return round(WIDTH * min(max(at_s / span_s, 0.0), 1.0), 1)


def _y(value: float, top: float) -> float:
    return round(HEIGHT * (1.0 - min(max(value / top, 0.0), 1.0)), 1)
