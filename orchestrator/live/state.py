"""What a live view shows: plain values, also the JSON of the page's event stream.

Sizes are phone bytes, durations seconds, shares 0 to 1. None is what is not known (yet).
"""

from __future__ import annotations

from enum import IntEnum

import msgspec


class Level(IntEnum):
    """How much a phone deserves a look; the worst phones come first."""

    CALM = 0
    NOTE = 1  # worth knowing
    ALARM = 2  # wrong now
    FAILED = 3  # over, and not well


class Remark(msgspec.Struct, frozen=True):
    """The latest thing that happened to a phone."""

    at_s: float  # host wall clock
    text: str


class PhoneLive(msgspec.Struct, frozen=True, kw_only=True):
    """One phone now."""

    alias: str
    model: str
    os: str
    phase: str = "waiting"  # as the session names it; `waiting` before, `ended` after
    progress_percent: float | None = None  # of the phase: install, push
    attempt: int = 1
    elapsed_s: float | None = None  # of inference
    left_s: float | None = None
    context_tokens: int | None = None
    budget_tokens: int | None = None
    trims: int = 0
    evictions: int = 0
    warnings: int = 0
    tokens_total: int | None = None
    footprint_bytes: int | None = None
    peak_bytes: int | None = None
    limit_bytes: int | None = None  # by what the app had available when it began
    tokens_per_s: float | None = None  # while it decodes, over the latest seconds
    trend: float | None = None  # that against the minute before: -0.1 is 10 % slower
    speeds: list[float] = []  # of the whole soak, evenly spaced
    thermal: str | None = None
    battery_percent: float | None = None
    battery_at_gate: bool = False  # the app says none: this is from before the attempt
    charging: bool | None = None
    silent_s: float | None = None  # since the newest record, while records are due
    died: str | None = None  # how the app's process went before the soak was over
    outcome: str | None = None
    cause: str | None = None
    last: Remark | None = None
    level: Level = Level.CALM
    concern: str | None = None  # why the level is not CALM


class RunLive(msgspec.Struct, frozen=True, kw_only=True):
    """A run now; `phones` has the worst first."""

    run_id: str
    state: str  # `running`, `ended`, or `left`: its process died
    started_s: float
    now_s: float
    ended_s: float | None
    virtual: bool
    stand_in: bool
    scenario: str
    duration_s: float | None
    phones: list[PhoneLive]
    stopped_by: str | None = None  # a signal, `fleet stop` or the end of the window
    unread_bytes: int = 0  # of a long run, still to be read
    outcome: str | None = None  # of the run, once its report is made
