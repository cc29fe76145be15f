"""A phone's timeline as a drawing: panels of one width over one axis of time."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from orchestrator.report.chart import palette
from orchestrator.report.chart.axes import (
    draw_battery,
    draw_context,
    draw_memory,
    draw_speed,
    draw_strip,
)
from orchestrator.report.chart.svg import inlined
from orchestrator.report.timeline import described

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import Locator

    from orchestrator.report.timeline import Timeline

_UNITS_PER_INCH: Final = 72  # of an SVG by matplotlib: one unit is one CSS pixel on the page
_STEPS_S: Final = (
    0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400,
)  # fmt: skip
_SETTINGS: Final[dict[Any, Any]] = {  # matplotlib types its keys one by one
    "svg.fonttype": "none",  # text stays text: it can be read, searched and coloured
    "svg.hashsalt": "fleet",  # equal input gives equal bytes
    "path.simplify": False,  # the columns are thin enough, and no spike may be smoothed away
    "font.size": 10.5,
    "font.family": "DejaVu Sans",  # comes with matplotlib; the page's font replaces it
    "axes.unicode_minus": False,
    "text.parse_math": False,  # a `$` is a `$`
}


@dataclass(frozen=True, slots=True)
class Format:
    """Size of a drawing; there is one for screens and paper and one for phones."""

    name: str
    width: int  # units
    columns: int  # distinct times of a line
    time_steps: int  # at most so many labels on the axis of time
    legend_size: float
    legend_line: float  # length of a sample line, in letters


WIDE: Final = Format("wide", 900, 400, 10, 10, 1.6)
NARROW: Final = Format("narrow", 380, 150, 5, 9, 1.0)


@dataclass(frozen=True, slots=True)
class _Panel:
    title: str
    height: float  # units
    draw: Callable[[Axes, Timeline, int], None]


def drawn(timeline: Timeline, form: Format, *, name: str, title: str) -> str:
    """Return the timeline as an inline `<svg>`.

    Args:
        timeline: What to draw.
        form: For which width.
        name: Unique on the page.
        title: Of the drawing, may hold text of a phone.
    """
    # Importing it takes half a second and tens of MiB: only who draws pays.
    import matplotlib as mpl  # noqa: PLC0415

    with mpl.rc_context(_SETTINGS):
        document = io.BytesIO()
        _figure(timeline, form).savefig(document, format="svg", metadata={"Date": None})
    words = ". ".join(f"{label}: {sentence}" for label, sentence in described(timeline))
    return inlined(
        document.getvalue(), name=f"{name}-{form.name}", title=title, description=f"{words}."
    )


def _panels(timeline: Timeline) -> list[_Panel]:
    series = timeline.series
    found = [
        _Panel("Memory, MiB", 150, draw_memory) if series.footprint_bytes else None,
        _Panel("Context, tokens", 105, draw_context) if series.rows else None,
        _Panel("Trims, evictions, memory warnings", 62, draw_strip) if series.rows else None,
        _Panel("Speed, tokens/s", 95, draw_speed) if series.tokens_per_s else None,
        _Panel("Battery, %", 55, draw_battery) if series.battery_percent else None,
    ]
    return [panel for panel in found if panel is not None]


def _figure(timeline: Timeline, form: Format) -> Figure:
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    panels = _panels(timeline)
    head, foot, left, right = 24.0, 30.0, 66.0, 18.0
    height = sum(panel.height + head for panel in panels) + foot
    figure = Figure(figsize=(form.width / _UNITS_PER_INCH, height / _UNITS_PER_INCH))
    FigureCanvasSVG(figure)
    figure.patch.set_visible(False)
    top = height
    for place, panel in enumerate(panels):
        top -= head + panel.height
        box = (
            left / form.width,
            top / height,
            (form.width - left - right) / form.width,
            panel.height / height,
        )
        axes = figure.add_axes(box)
        _dress(axes, panel.title)
        panel.draw(axes, timeline, form.columns)
        _legend(axes, form)
        if timeline.died:
            axes.axvline(timeline.span_s, color=palette.DEATH, linewidth=2)
        _time_axis(axes, timeline.span_s, form, labelled=place == len(panels) - 1)
    return figure


def _dress(axes: Axes, title: str) -> None:
    axes.patch.set_visible(False)
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=palette.INK, pad=6)
    axes.grid(visible=True, color=palette.GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=palette.FAINT, labelcolor=palette.FAINT, length=3)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_locator(_locator())
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(palette.GRID)


def _locator() -> Locator:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    return MaxNLocator(nbins=4, integer=True)


def _legend(axes: Axes, form: Format) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    legend = axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=len(labels),
        frameon=False,
        borderaxespad=0.0,
        borderpad=0.2,
        handletextpad=0.4,
        handlelength=form.legend_line,
        columnspacing=form.legend_line * 0.7,
        fontsize=form.legend_size,
    )
    for text in legend.get_texts():
        text.set_color(palette.FAINT)


def _time_axis(axes: Axes, span_s: float, form: Format, *, labelled: bool) -> None:
    axes.set_xlim(0, span_s)
    step_s = next((s for s in _STEPS_S if span_s / s <= form.time_steps), _STEPS_S[-1])
    while span_s / step_s > form.time_steps:
        step_s *= 2  # a soak of weeks
    unit, seconds = ("s", 1) if step_s < 60 else ("min", 60) if step_s < 3600 else ("h", 3600)
    places = [step_s * number for number in range(int(span_s / step_s) + 1)]
    axes.set_xticks(places)
    axes.set_xticklabels([f"{place / seconds:g} {unit}" for place in places])
    if not labelled:
        axes.tick_params(axis="x", labelbottom=False, length=0)
