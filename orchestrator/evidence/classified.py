"""A diagnostic report as evidence about one phone's soak: what it says, and whom it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ReportKind = Literal["jetsam", "crash", "exc_resource", "watchdog", "panic", "other", "unparsed"]


@dataclass(frozen=True, slots=True)
class ClassifiedReport:
    """One report, tied to the app under test or not.

    A report is evidence of a death only where it is `ours`; everything else is listed for people
    and decides nothing. A panic takes every app with it, so one within a launch is `ours` too.
    """

    file: str  # where the raw report lies, as the caller names it
    kind: ReportKind  # "unparsed" where nothing could be read; the raw file stays
    ours: bool  # about a process that was launched here, in its time; or a panic in that time
    in_window: bool  # its time, by the host's clock, lies within a launch
    launch: int | None  # number of the launch it belongs to, None where none fits
    reason: str | None  # jetsam reason, signal, termination reason; raw text of the phone
    foreground: bool | None  # the victim was in front; None where the report does not say
    footprint_bytes: int | None  # of the victim: phone bytes, by the report's own page size
    pid: int | None  # of the victim
    at_s: float | None  # Unix seconds by the host's clock; None for naive or missing times
    summary: str  # one plain sentence for people; may hold text of the phone
    thermal_kill: bool = False  # a crash report whose reason is that the phone was too hot
    fatal: bool | None = None  # the process ended by it; None where the report does not say
    ignored: str | None = None  # why it is not this phone's: a watch's, a simulator's
