"""Lines for logs: changes once, a summary every minute, daily business never."""

from __future__ import annotations

from orchestrator.live.plain import SUMMARY_EVERY_S, PlainLog
from tests.live.phones import NOW_S, phone, run


def test_what_changed_is_said_once() -> None:
    log = PlainLog()
    first = log.lines(run(phone()))
    assert first == [
        "03:33:20 run 20261129T175801Z-78a7a1: running, smoke (virtual)",
        "03:33:20 bench-01: soak",
    ]
    assert log.lines(run(phone(trims=13))) == []
    assert log.lines(run(phone(phase="collect"))) == ["03:33:20 bench-01: collect"]


def test_an_alarm_is_said_once_until_it_is_over() -> None:
    log = PlainLog()
    log.lines(run(phone()))
    hot, calm = run(phone(thermal="critical")), run(phone())
    told = [log.lines(shown) for shown in (hot, hot, calm, hot)]
    assert told == [["03:33:20 bench-01: thermal critical"], [], [], told[0]]


def test_every_minute_has_a_summary() -> None:
    log = PlainLog()
    log.lines(run(phone()))
    lines = log.lines(run(phone(), now_s=NOW_S + SUMMARY_EVERY_S))
    assert lines[0] == "03:34:20 1 phone: 1 soak"
    assert "ran/left 1m15/1h58, context 812/1024, 12 trims" in lines[1]


def test_fifty_phones_do_not_fill_the_log() -> None:
    log = PlainLog()
    phones = [phone(f"bench-{index:02d}") for index in range(50)]
    log.lines(run(*phones))
    assert len(log.lines(run(*phones, now_s=NOW_S + SUMMARY_EVERY_S))) == 10


def test_the_end_says_the_outcome() -> None:
    log = PlainLog()
    ended = run(phone(phase="ended", outcome="PASS"), state="ended", outcome="PASS")
    assert [line[9:] for line in log.lines(ended)][1:] == ["bench-01: PASS"]
