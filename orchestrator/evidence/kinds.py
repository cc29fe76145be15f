"""What a report is called in the list of `fleet crashlog parse`; relied on from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from orchestrator.evidence.reports import (
    CRASH_TYPES,
    EXC_RESOURCE_TYPES,
    JETSAM_TYPES,
    CrashReport,
    ExcResourceReport,
)

if TYPE_CHECKING:
    from orchestrator.evidence.reports import ParsedReport

Kind = Literal[
    "jetsam",
    "crash",
    "watchdog",
    "thermal-kill",
    "exc-resource-memory",
    "cpu-resource",
    "wakeups-resource",
    "disk-writes-resource",
    "panic",
    "force-reset",
    "reset-counter",
    "stackshot",
    "analytics",
    "other",
    "unparsed",
]

RESTARTS: Final = frozenset({"panic", "force-reset", "reset-counter"})

_OF_TYPE: Final[dict[str, Kind]] = {
    **dict.fromkeys(JETSAM_TYPES, "jetsam"),
    **dict.fromkeys(CRASH_TYPES, "crash"),
    **dict.fromkeys(EXC_RESOURCE_TYPES, "exc-resource-memory"),
    "202": "cpu-resource",
    "206": "cpu-resource",
    "142": "wakeups-resource",
    "145": "disk-writes-resource",
    "210": "panic",
    "151": "force-reset",
    "115": "reset-counter",
    "288": "stackshot",
    "509": "stackshot",
    "211": "analytics",
}
_OF_RESOURCE: Final[dict[str, Kind]] = {
    "MEMORY": "exc-resource-memory",
    "CPU": "cpu-resource",
    "WAKEUPS": "wakeups-resource",
    "IO": "disk-writes-resource",
    "DISK_WRITES": "disk-writes-resource",
}


def kind_of(report: ParsedReport) -> Kind:
    """Return what a report is, also one whose body cannot be read but whose type is known."""
    bug_type = report.header.bug_type
    if bug_type is None:
        return "unparsed"
    if isinstance(report, CrashReport):
        return "watchdog" if report.watchdog else "thermal-kill" if report.thermal else "crash"
    if isinstance(report, ExcResourceReport) and report.resource is not None:
        return _OF_RESOURCE.get(_resource(report.resource), "other")
    return _OF_TYPE.get(bug_type, "other")


def _resource(text: str) -> str:
    # Some systems print `RESOURCE_TYPE_MEMORY` where others print `MEMORY`.
    return text.strip().upper().removeprefix("RESOURCE_TYPE_")
