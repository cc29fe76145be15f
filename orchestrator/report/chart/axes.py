"""One panel each: what of a timeline it shows, and how. No text of a phone reaches a drawing."""

from __future__ import annotations

from itertools import pairwise
from math import nan
from statistics import median
from typing import TYPE_CHECKING, Final

from orchestrator.report.chart import palette
from orchestrator.report.timeline import in_mebibytes, mark_times, thermal_spans, thinned
from orchestrator.report.wording import MIB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from orchestrator.report.timeline import Timeline
    from orchestrator.verdict.series import Bucket

_GAP_SPACINGS: Final = 10.0  # a pause this much longer than usual is drawn as a gap
_HEAD_SPACE: Final = 1.12
_STRIP: Final = (
    ("predicted", (("trim_predicted", palette.PREDICTED),)),
    ("trims", (("trim", palette.TRIM), ("trim_unexpected", palette.WRONG))),
    ("evictions", (("evict", palette.EVICT),)),
    ("warnings", (("memory_warning", palette.WARNING),)),
)


def draw_memory(axes: Axes, timeline: Timeline, columns: int) -> None:
    """Draw footprint, footprint without ballast, and peak, against limit and allowance, in MiB."""
    series, span_s = timeline.series, timeline.span_s
    footprint = thinned(in_mebibytes(series.footprint_bytes), span_s, columns)
    own = thinned(in_mebibytes(series.own_bytes), span_s, columns)
    peak = thinned(in_mebibytes(series.peak_bytes), span_s, columns)
    axes.fill_between(*_path(footprint), color=palette.FOOTPRINT, alpha=0.13, linewidth=0)
    _line(axes, footprint, palette.FOOTPRINT, "footprint")
    if any(o.high != f.high for o, f in zip(own, footprint, strict=False)):
        _line(axes, own, palette.OWN, "without ballast")
    _line(axes, peak, palette.PEAK, "peak", dashes=(1, 1.5))
    bounds = (
        ("limit", timeline.limit_bytes, palette.LIMIT, (6, 3)),
        ("allowed", timeline.allowed_bytes, palette.ALLOWED, (6, 2, 1, 2)),
    )
    top = max(bucket.high for bucket in footprint)
    for name, size_bytes, color, dashes in bounds:
        if size_bytes is not None:
            top = max(top, size_bytes / MIB)
            _bound(axes, size_bytes / MIB, f"{name} {size_bytes / MIB:,.0f}", color, dashes)
    axes.set_ylim(0, top * _HEAD_SPACE)


def draw_context(axes: Axes, timeline: Timeline, columns: int) -> None:
    """Draw the context's length against the token budget, with what cut it."""
    rows = thinned(timeline.series.rows, timeline.span_s, columns)
    budget = timeline.budget_tokens
    top = max([b.high for b in rows] + [float(budget)]) * _HEAD_SPACE
    for kind, color in (("evict", palette.EVICT), ("launch", palette.LAUNCH)):
        times = mark_times(timeline, kind, columns)
        shown = times[1:] if kind == "launch" else times  # the first launch is the beginning
        _ticks(axes, shown, (0, top), color, label=kind.replace("evict", "eviction"))
    _line(axes, rows, palette.ROWS, "")
    trims = mark_times(timeline, "trim", columns)
    _ticks(axes, trims, (budget, budget + top * 0.06), palette.TRIM, label="trim")
    label = f"budget {budget:,}"
    axes.axhline(budget, color=palette.BUDGET, linewidth=1.2, linestyle=(0, (6, 3)), label=label)
    axes.set_ylim(0, top)


def draw_strip(axes: Axes, timeline: Timeline, columns: int) -> None:
    """Draw predicted trims over observed ones, and evictions and warnings below them."""
    for place, (_, kinds) in enumerate(_STRIP):
        top = len(_STRIP) - place
        for kind, color in kinds:
            times = _predicted(timeline, columns) if kind == "trim_predicted" else None
            found = mark_times(timeline, kind, columns) if times is None else times
            _ticks(axes, found, (top - 0.85, top - 0.1), color)
    _ticks(axes, mark_times(timeline, "trim_missing", columns), (3.15, 3.9), palette.WRONG)
    axes.set_ylim(0, len(_STRIP))
    axes.set_yticks([len(_STRIP) - place - 0.5 for place in range(len(_STRIP))])
    axes.set_yticklabels([name for name, _ in _STRIP])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False)


def _predicted(timeline: Timeline, columns: int) -> list[float]:
    """Return the times of the trims that came as predicted; the missing ones are drawn apart."""
    undue = set(mark_times(timeline, "trim_unexpected", columns))
    return [at_s for at_s in mark_times(timeline, "trim", columns) if at_s not in undue]


def draw_speed(axes: Axes, timeline: Timeline, columns: int) -> None:
    """Draw tokens/s over the thermal states that were warmer than nominal."""
    for state, color in palette.THERMAL.items():
        spans = [
            (at_s, end_s - at_s) for at_s, end_s, own in thermal_spans(timeline) if own == state
        ]
        if spans:
            axes.broken_barh(
                spans,
                (0, 1),
                transform=axes.get_xaxis_transform(),
                color=color,
                linewidth=0,
                label=f"thermal state {state}",
            )
    speed = thinned(timeline.series.tokens_per_s, timeline.span_s, columns)
    _line(axes, speed, palette.SPEED, "")
    axes.set_ylim(0, max([b.high for b in speed] + [1.0]) * _HEAD_SPACE)


def draw_battery(axes: Axes, timeline: Timeline, columns: int) -> None:
    """Draw the battery's charge in percent."""
    battery = thinned(timeline.series.battery_percent, timeline.span_s, columns)
    _line(axes, battery, palette.BATTERY, "")
    axes.set_ylim(0, 105)
    axes.set_yticks([0, 50, 100])


def _line(
    axes: Axes, buckets: Sequence[Bucket], color: str, label: str, dashes: tuple[float, ...] = ()
) -> None:
    times, values = _path(buckets)
    style = (0, dashes) if dashes else "-"
    axes.plot(times, values, color=color, linewidth=1.3, linestyle=style, label=label)


def _path(buckets: Sequence[Bucket]) -> tuple[list[float], list[float]]:
    """Return a line through both extremes of each bucket, interrupted where readings are."""
    times: list[float] = []
    values: list[float] = []
    gap_s = _longest_joint_s(buckets)
    for bucket in buckets:
        if times and bucket.start_s - times[-1] > gap_s:
            times.append(times[-1])
            values.append(nan)
        # The nearer extreme first: a steady slope stays one line.
        rising = not values or abs(bucket.low - values[-1]) <= abs(bucket.high - values[-1])
        first, second = (bucket.low, bucket.high) if rising else (bucket.high, bucket.low)
        times.append(bucket.start_s)
        values.append(first)
        if second != first:
            times.append(bucket.start_s)
            values.append(second)
    return times, values


def _longest_joint_s(buckets: Sequence[Bucket]) -> float:
    spacings = [later.start_s - earlier.start_s for earlier, later in pairwise(buckets)]
    return median(spacings) * _GAP_SPACINGS if spacings else 0.0


def _ticks(
    axes: Axes,
    times: Sequence[float],
    heights: tuple[float, float],
    color: str,
    label: str = "",
) -> None:
    """Draw upright ticks as one path."""
    if not times:
        return
    low, high = heights
    places = [place for at_s in times for place in (at_s, at_s, at_s)]
    values = [value for _ in times for value in (low, high, nan)]
    axes.plot(places, values, color=color, linewidth=1.1, label=label)


def _bound(axes: Axes, value: float, label: str, color: str, dashes: tuple[float, ...]) -> None:
    axes.axhline(value, color=color, linewidth=1.2, linestyle=(0, dashes))
    axes.annotate(
        label,
        xy=(1.0, value),
        xycoords=("axes fraction", "data"),
        xytext=(-3, 3),
        textcoords="offset points",
        ha="right",
        color=color,
    )
