"""Drawing: one write per change, nothing where there is none, no more than was drawn is erased."""

from __future__ import annotations

import io

import pytest

from orchestrator.live.lines import Span
from orchestrator.live.screen import Screen, is_wanted, rows_taken


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def line(text: str) -> tuple[Span, ...]:
    return (Span(text),)


def test_an_unchanged_view_writes_nothing() -> None:
    stream = Terminal()
    screen = Screen(stream)
    screen.draw([line("one")])
    before = stream.getvalue()
    screen.draw([line("one")])
    assert stream.getvalue() == before


def test_a_frame_goes_up_as_far_as_the_last_one_and_is_one_update() -> None:
    stream = Terminal()
    screen = Screen(stream)
    screen.draw([line("one"), line("two")])
    start = stream.tell()
    screen.draw([line("three")])
    frame = stream.getvalue()[start:]
    assert frame.startswith("\x1b[?2026h")
    assert frame.endswith("\x1b[?2026l")
    assert "\x1b[2A\x1b[2Kthree\r\n\x1b[J" in frame


def test_long_lines_take_more_rows_on_a_narrower_terminal() -> None:
    assert rows_taken([line("x" * 79), line("")], 40) == 3


def test_roles_are_colours_of_the_terminal() -> None:
    stream = Terminal()
    Screen(stream).draw([(Span("bad", "bad"), Span(" plain"))])
    assert "\x1b[1;31mbad\x1b[0m plain" in stream.getvalue()


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"CI": "true"}, {"TERM": "dumb"}])
def test_a_terminal_that_is_told_to_stay_plain_does(environment: dict[str, str]) -> None:
    assert is_wanted(Terminal(), {"TERM": "xterm"})
    assert not is_wanted(Terminal(), {"TERM": "xterm"} | environment)


def test_a_pipe_is_no_terminal() -> None:
    assert not is_wanted(io.StringIO(), {})
