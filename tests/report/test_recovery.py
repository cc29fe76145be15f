from __future__ import annotations

from orchestrator.report.recovery import evidence_from_events
from orchestrator.runlog.events import Event

UDID = "u-1"


def event(kind: str, at_s: float, udid: str = UDID, **facts: str | float | bool | None) -> Event:
    return Event(at_s=at_s, kind=kind, udid=udid, attempt=1, facts=facts)


def test_launches_end_with_the_first_exit_of_their_pid() -> None:
    evidence = evidence_from_events(
        [
            event("launched", 10.0, pid=7),
            event("app_exited", 20.0, pid=7, signal=9, exit_code=None),
            event("launched", 30.0, pid=8),
        ],
        UDID,
        1,
    )
    windows = [(w.number, w.pid, w.started_s, w.ended_s) for w in evidence.launches]
    assert windows == [(1, 7, 10.0, 20.0), (2, 8, 30.0, None)]
    assert [(e.pid, e.signal, e.exit_code) for e in evidence.exits] == [(7, 9, None)]


def test_a_pid_that_comes_twice_is_two_launches() -> None:
    evidence = evidence_from_events(
        [
            event("launched", 1.0, pid=7),
            event("app_exited", 2.0, pid=7),
            event("launched", 3.0, pid=7),
            event("app_exited", 4.0, pid=7),
        ],
        UDID,
        1,
    )
    assert [w.ended_s for w in evidence.launches] == [2.0, 4.0]


def test_other_phones_and_remarks_without_a_pid_are_left_out() -> None:
    evidence = evidence_from_events(
        [
            event("launched", 1.0, udid="other", pid=7),
            event("launched", 1.0, pid="7"),
            event("phase", 1.0),
        ],
        UDID,
        1,
    )
    assert (evidence.launches, evidence.exits) == ([], [])
