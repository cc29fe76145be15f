"""The table: right at any size, the worst first, harmless whatever a phone is called."""

from __future__ import annotations

from typing import Any

import pytest
from rich.cells import cell_len

from orchestrator.live.cleaning import printable
from orchestrator.live.lines import text_of
from orchestrator.live.state import Level, PhoneLive, Remark, RunLive
from orchestrator.live.table import Terminal, run_lines
from tests.live.phones import GIB, HOSTILE, NOW_S, phone, run

SIZES = [(80, 24), (120, 40), (200, 60)]


def drawn(shown: RunLive, width: int = 80, height: int = 24, *, ascii_only: bool = False) -> str:
    lines = run_lines(shown, Terminal(width, height, ascii_only))
    return "\n".join(text_of(line) for line in lines)


def many(count: int) -> list[PhoneLive]:
    return [phone(f"bench-{index:02d}", tokens_per_s=50.0 + index) for index in range(count)]


def test_a_phone_shows_everything_at_80_columns() -> None:
    text = drawn(run(phone()))
    expected = [
        "20261129T175801Z-78a7a1  running  1m20  smoke (virtual)",
        "1 phone: 1 soak",
        "bench-01 soak     1m15/1h58  812/1024   12  1.0G 33%  58.1 → nominal    87%",
        "    trim 1024 to 512, 2s ago",
    ]
    assert [part for part in expected if part not in text] == []


@pytest.mark.parametrize("count", [1, 2, 50])
@pytest.mark.parametrize(("width", "height"), [*SIZES, (40, 10), (10, 3)])
def test_no_line_is_too_long_and_no_view_too_high(width: int, height: int, count: int) -> None:
    lines = run_lines(run(*many(count)), Terminal(width, height))
    assert len(lines) < max(height, 2)
    assert max(cell_len(text_of(line)) for line in lines) < max(width, 40)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_what_does_not_fit_is_one_line(width: int, height: int) -> None:
    text = drawn(run(*many(60)), width, height).splitlines()
    shown = sum(line.startswith("  bench-") for line in text)
    assert f"and {60 - shown} more: slowest {50 + shown:.1f} tok/s, memory at most 33%" in text[-1]


def test_the_worst_phones_come_first_with_their_reason() -> None:
    phones = [*many(50), phone("zz-hot", thermal="critical"), phone("zz-slow", trend=-0.4)]
    rows = drawn(run(*phones)).splitlines()[3:]
    assert [row.split()[1] for row in rows[::2]][:2] == ["zz-hot", "zz-slow"]
    assert "thermal critical" in rows[1]
    assert "40% slower than the minute before" in rows[3]


def test_wide_terminals_have_the_last_event_beside_the_phone() -> None:
    row = drawn(run(phone()), 120).splitlines()[3]
    assert row.endswith("87% trim 1024 to 512, 2s ago")
    assert "iPhone 15 Pro, 18.6" in drawn(run(phone()), 200)


def test_unknown_numbers_are_dashes() -> None:
    row = drawn(run(PhoneLive(alias="new", model="", os=""))).splitlines()[3]
    assert row.split() == ["new", "waiting", "-", "-", "0", "-", "-", "-", "-"]


def test_progress_is_beside_its_phase() -> None:
    assert "inst 40%" in drawn(run(phone(phase="install", progress_percent=40.0)))


def test_an_ascii_terminal_gets_ascii() -> None:
    phones = [phone("x" * 99, trend=trend, last=None) for trend in (-0.5, 0.0, 0.5, None)]
    for width, height in SIZES:
        assert drawn(run(*phones), width, height, ascii_only=True).isascii()


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_hostile_text_is_harmless(width: int, height: int) -> None:
    text = printable(HOSTILE)
    shown = phone(text, last=Remark(NOW_S, text), thermal=text, model=text, phase=text)
    lines = drawn(run(shown), width, height).splitlines()
    assert [char for line in lines for char in line if not char.isprintable()] == []
    assert max(map(cell_len, lines)) < width


def test_absurd_numbers_stay_in_their_columns() -> None:
    huge = 2**63 - 1
    odd = phone(
        context_tokens=huge, budget_tokens=-1, footprint_bytes=huge, trims=huge, left_s=1e30,
        tokens_per_s=1e300, battery_percent=1e300, elapsed_s=-5.0, limit_bytes=1,
    )  # fmt: skip
    assert max(map(cell_len, drawn(run(odd)).splitlines())) < 80


def test_a_run_that_is_being_stopped_says_so() -> None:
    assert "stopping (SIGINT)" in drawn(run(phone(), stopped_by="SIGINT"))


def test_a_run_without_its_process_says_what_to_type() -> None:
    assert "fleet resume" in drawn(run(phone(), state="left"))


def test_the_stand_in_app_is_named() -> None:
    assert "(virtual, stand-in app)" in drawn(run(phone(), stand_in=True))


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({}, Level.CALM),
        ({"footprint_bytes": int(2.5 * GIB)}, Level.NOTE),
        ({"footprint_bytes": int(2.8 * GIB)}, Level.ALARM),
        ({"context_tokens": 1025}, Level.ALARM),
        ({"silent_s": 16.0}, Level.ALARM),
        ({"silent_s": None, "phase": "collect"}, Level.CALM),
        ({"battery_percent": 10.0, "charging": False}, Level.NOTE),
        ({"battery_percent": 10.0, "charging": True}, Level.CALM),
        ({"attempt": 2}, Level.NOTE),
        ({"died": "app exited, signal 9"}, Level.ALARM),
        ({"phase": "ended", "cause": "device_lost"}, Level.FAILED),
        ({"phase": "ended", "outcome": "PASS", "cause": "completed"}, Level.CALM),
        ({"phase": "ended", "outcome": "FAIL", "cause": "hang"}, Level.FAILED),
        ({"phase": "ended", "footprint_bytes": 3 * GIB}, Level.CALM),
    ],
)
def test_levels(changes: dict[str, Any], level: Level) -> None:
    assert phone(**changes).level is level
