"""Small reports for tests: only what a test is about, everything else left out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from hypothesis import settings

# The same examples every time, on a machine of any speed.
FUZZ = settings(derandomize=True, deadline=None)

FIXTURES = Path(__file__).parent / "fixtures"

APP = "SoakHarness"
UUID = "39a52b95-6940-51e6-9c8f-f26318c57766"
NOON_S = 1_768_046_400.0  # 2026-01-10 12:00:00 UTC
NOON = "2026-01-10 12:00:00.00 +0000"


@dataclass(frozen=True, slots=True)
class Window:
    """A launch as `classify` sees it."""

    number: int = 1
    pid: int = 501
    started_s: float = NOON_S - 600
    ended_s: float | None = NOON_S


def report(bug_type: object, body: object, **header: object) -> bytes:
    """Return a report: a header line and a body."""
    head = {"bug_type": bug_type, "timestamp": NOON, "incident_id": "I-1", **header}
    return json.dumps(head).encode() + b"\n" + json.dumps(body, indent=1).encode()


def process(name: object = APP, pid: object = 501, **fields: object) -> dict[str, object]:
    """Return an entry of a jetsam report's process list, killed for its own limit."""
    entry = {
        "name": name,
        "pid": pid,
        "uuid": UUID,
        "rpages": 65536,
        "states": ["frontmost"],
        "reason": "per-process-limit",
    }
    return {**entry, **fields}


def jetsam(*processes: object, **body: object) -> bytes:
    """Return a JetsamEvent."""
    return report(
        "298", {"memoryStatus": {"pageSize": 16384}, "processes": list(processes), **body}
    )


def crash(**body: object) -> bytes:
    """Return a crash report of the app."""
    facts = {"pid": 501, "procRole": "Foreground", "exception": {"signal": "SIGABRT"}, **body}
    return report("309", facts, name=APP, slice_uuid=UUID)
