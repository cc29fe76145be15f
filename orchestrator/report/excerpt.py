"""What a page shows of a diagnostic report: victims of a jetsam event, or the top of a crash.

The raw file stays the evidence; an excerpt saves opening it. All texts are the phone's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.evidence.reports import (
    CrashReport,
    ExcResourceReport,
    JetsamReport,
    PanicReport,
    UsageReport,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.evidence.classified import ClassifiedReport
    from orchestrator.evidence.frames import Frame
    from orchestrator.evidence.reports import JetsamVictim, ParsedReport

MOST_VICTIMS: Final = 12
MOST_FRAMES: Final = 12
_LONGEST: Final = 300


@dataclass(frozen=True, slots=True)
class Victim:
    """One process that a jetsam event killed."""

    process: str
    ours: bool  # the process of the app under test
    reason: str
    footprint_bytes: int | None
    foreground: bool | None


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The telling part of one report."""

    file: str
    kind: str  # of the report, "jetsam", "crash", ...
    lines: tuple[str, ...]  # reason, message, thread; one thought each
    victims: tuple[Victim, ...]  # in the order of the kills
    victims_left_out: int
    frames: tuple[str, ...]  # innermost first
    frames_left_out: int


def excerpt_of(report: ParsedReport, classified: ClassifiedReport) -> Excerpt | None:
    """Return the excerpt of a report about this soak, None for all others."""
    if not (classified.ours and classified.in_window):
        return None
    victims = _victims(report, classified)
    frames = _frames(report)
    return Excerpt(
        file=classified.file,
        kind=classified.kind,
        lines=tuple(_short(line) for line in _lines(report)),
        victims=victims[:MOST_VICTIMS],
        victims_left_out=max(0, len(victims) - MOST_VICTIMS),
        frames=frames[:MOST_FRAMES],
        frames_left_out=max(0, len(frames) - MOST_FRAMES),
    )


def _victims(report: ParsedReport, classified: ClassifiedReport) -> tuple[Victim, ...]:
    if not isinstance(report, JetsamReport):
        return ()
    return tuple(_victim(victim, classified) for victim in report.victims)


def _victim(victim: JetsamVictim, classified: ClassifiedReport) -> Victim:
    return Victim(
        process=_short(victim.name or "without a name"),
        ours=victim.pid is not None and victim.pid == classified.pid,
        reason=_short(victim.reason),
        footprint_bytes=victim.footprint_bytes,
        foreground=victim.foreground,
    )


def _lines(report: ParsedReport) -> Iterator[str]:
    match report:
        case JetsamReport():
            size = f"{report.page_size_bytes:,} bytes a page"
            yield f"{size}, assumed: the report has none" if report.page_size_assumed else size
        case CrashReport():
            yield from _crash_lines(report)
        case ExcResourceReport():
            yield f"resource {report.resource or 'not named'}, limit {report.limit_mib or '?'} MiB"
            yield from _told(report.message)
        case UsageReport():
            yield report.name
            yield from _told(report.message)
        case PanicReport():
            yield from _told(report.first_line)
        case _:
            pass


def _crash_lines(report: CrashReport) -> Iterator[str]:
    raised = " ".join(filter(None, (report.exception, report.signal and f"({report.signal})")))
    yield from _told(raised)
    if report.namespace is not None or report.code is not None:
        code = "" if report.code is None else f" {report.code:#x}"
        yield f"termination: {report.namespace or 'not named'}{code}"
    yield from _told(report.message)
    if report.thermal_state is not None:
        yield f"thermal state: {report.thermal_state}"


def _told(text: str | None) -> Iterator[str]:
    if text:
        yield text


def _frames(report: ParsedReport) -> tuple[str, ...]:
    if not isinstance(report, CrashReport) or report.backtrace is None:
        return ()
    return tuple(_frame(number, frame) for number, frame in enumerate(report.backtrace.frames))


def _frame(number: int, frame: Frame) -> str:
    place = frame.symbol or ("?" if frame.offset is None else f"+ {frame.offset:#x}")
    return _short(f"{number}  {frame.image or 'unknown image'}  {place}")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
