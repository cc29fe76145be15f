"""`events.ndjson`: the host's remarks, one JSON object a line.

Kinds in use: `run_started`, `phase` (facts: name), `progress`
(what, percent), `installed`, `launched` (pid, launch: from 1 in the attempt), `connected`,
`disconnected`, `app_exited` (pid, exit_code, signal), `app_alive` (pid, alive), `footprint` (pid,
bytes), `report_pulled` (path), `session_ended` (cause, error), `interrupted` (by), `run_ended`;
after the death of an orchestrator `run_resumed`, `adopted` (pid), `keeper_gone`;
around the absence of a phone `gap_began` (reason), `gap_ended` (seconds); `gate_waits` (reason,
facts), `retry` (reason), `hub_incident` (phones, count), `quarantined` (reason);
`host` (load and memory of the host) every minute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from orchestrator.runlog.lines import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One remark."""

    at_s: float  # host wall clock, Unix seconds
    kind: str
    udid: str | None = None
    attempt: int | None = None
    facts: dict[str, str | int | float | bool | None] = {}


def launch_number(launched: Event) -> int:
    """Return which launch of its attempt a `launched` remark is about; 1 where it does not say."""
    number = launched.facts.get("launch")
    return number if isinstance(number, int) and number > 0 else 1


def read_events(path: Path) -> Iterator[Event]:
    """Yield the events of a run; lines that are torn or damaged are left out."""
    decoder = msgspec.json.Decoder(Event)
    for line in read_lines(path):
        try:
            yield decoder.decode(line.content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
