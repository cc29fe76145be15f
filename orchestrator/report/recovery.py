"""What the host saw of an attempt, put together from `events.ndjson` where a kill left no more.

`evidence.json` is a whole file; a run that lost its power has only the remarks made on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.runlog.documents import AppExit, EvidenceDocument, LaunchWindow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.runlog.events import Event


def evidence_from_events(events: Iterable[Event], udid: str, attempt: int) -> EvidenceDocument:
    """Return the launches and exits of one attempt on one phone, as far as they were remarked."""
    launched: list[tuple[int, float]] = []
    exits: list[AppExit] = []
    for event in events:
        pid = event.facts.get("pid")
        if event.udid != udid or event.attempt not in (None, attempt) or not isinstance(pid, int):
            continue
        if event.kind == "launched":
            launched.append((pid, event.at_s))
        elif event.kind == "app_exited":
            exits.append(
                AppExit(
                    pid=pid,
                    at_s=event.at_s,
                    exit_code=_whole(event.facts.get("exit_code")),
                    signal=_whole(event.facts.get("signal")),
                )
            )
    return EvidenceDocument(
        attempt=attempt, launches=_windows(launched, exits), exits=exits, reports=[]
    )


def _windows(launched: list[tuple[int, float]], exits: list[AppExit]) -> list[LaunchWindow]:
    return [
        LaunchWindow(
            number=number,
            pid=pid,
            launch=None,
            started_s=started_s,
            # A pid is used again only after its process ended: the first exit behind the start.
            ended_s=next((e.at_s for e in exits if e.pid == pid and e.at_s >= started_s), None),
        )
        for number, (pid, started_s) in enumerate(launched, start=1)
    ]


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
