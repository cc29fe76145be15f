"""Colours by their meaning. In an SVG they are the light ones, and classes for the style sheet.

A viewer that blocks style sheets still shows the light colours; each has a contrast of at least
3:1 to white where it is a line and 4.5:1 where it is text. No two meanings share a colour, so that
a colour in matplotlib's output leads back to its class.
"""

from __future__ import annotations

from typing import Final

INK: Final = "#1c1d21"
FAINT: Final = "#5b5e66"
GRID: Final = "#e2e3e7"
FOOTPRINT: Final = "#2d6cdf"
OWN: Final = "#0b7a6b"
PEAK: Final = "#6b4fbb"
LIMIT: Final = "#b3261e"
ALLOWED: Final = "#9a5b00"
ROWS: Final = "#2d6ce0"
BUDGET: Final = "#b3261f"
TRIM: Final = "#7a34d1"
PREDICTED: Final = "#5b5e67"
WRONG: Final = "#b32620"
EVICT: Final = "#c2410c"
WARNING: Final = "#9a5b01"
LAUNCH: Final = "#5b5e68"
DEATH: Final = "#b32621"
SPEED: Final = "#2d6ce1"
BATTERY: Final = "#1a7f45"
THERMAL: Final = {"fair": "#fbe8a6", "serious": "#f9c489", "critical": "#f1a097"}

CLASSES: Final = {
    INK: "ink",
    FAINT: "faint",
    GRID: "grid",
    FOOTPRINT: "blue",
    OWN: "teal",
    PEAK: "violet",
    LIMIT: "red",
    ALLOWED: "amber",
    ROWS: "blue",
    BUDGET: "red",
    TRIM: "violet",
    PREDICTED: "faint",
    WRONG: "red",
    EVICT: "orange",
    WARNING: "amber",
    LAUNCH: "faint",
    DEATH: "red",
    SPEED: "blue",
    BATTERY: "green",
    THERMAL["fair"]: "fair",
    THERMAL["serious"]: "serious",
    THERMAL["critical"]: "critical",
}
