"""The view beside a run: it shows, and it never costs the run."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.live import BuildLine, shown
from orchestrator.runlog.files import write_document
from orchestrator.runlog.layout import RunPaths
from tests.end_to_end.fleet_process import wait_for
from tests.live.phones import summary
from tests.report.runs import write_run

if TYPE_CHECKING:
    from pathlib import Path


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def colourful(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that keeps no terminal plain."""
    for name in ("NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.usefixtures("colourful")
def test_a_build_is_one_line_on_a_terminal_and_leaves_none() -> None:
    stream = Terminal()
    output = BuildLine(stream)
    output.write("[1/9] Compiling A\n")
    output.write("[2/9] Compiling \x1b[2JB\n")
    assert "\x1b[1A\x1b[2K\x1b[1mbuilding the app \x1b[0m" in stream.getvalue()
    assert "[2/9] Compiling [2JB" in stream.getvalue()
    output.done()
    assert stream.getvalue().endswith("\x1b[1A\x1b[J\x1b[?25h\x1b[?2026l")


@pytest.mark.usefixtures("colourful")
def test_the_seconds_go_on_while_the_compiler_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.cli.live.LOOK_EVERY_S", 0.01)
    stream = Terminal()
    output = BuildLine(stream)
    output.write("[1/9] Compiling A\n")
    wait_for(lambda: "1 s  [1/9]" in stream.getvalue(), 30, "the next second")
    output.done()


@pytest.mark.usefixtures("colourful")
def test_nothing_is_drawn_where_nothing_is_built() -> None:
    stream = Terminal()
    BuildLine(stream).done()
    assert stream.getvalue() == ""


def test_a_log_gets_all_that_the_compiler_says() -> None:
    stream = io.StringIO()
    output = BuildLine(stream)
    output.write("[1/9] Compiling A\n")
    output.write("warning: B\n")
    output.done()
    assert stream.getvalue() == "[1/9] Compiling A\nwarning: B\n"


def test_the_last_state_of_a_run_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path / "run")
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with shown(run.paths):
        write_document(run.paths.summary_json, summary("FAIL", "hang"))
    assert "run run: FAIL" in stream.getvalue()
    assert "desk-15pro: FAIL hang" in stream.getvalue()


def test_a_view_that_cannot_be_shown_costs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path / "run")
    closed = io.StringIO()
    closed.close()
    for stream, paths in (
        (closed, run.paths),
        (None, run.paths),
        (io.StringIO(), RunPaths(tmp_path / "none")),
    ):
        monkeypatch.setattr(sys, "stderr", stream)
        with shown(paths):
            ran = True
    assert ran


def test_what_goes_wrong_in_a_run_goes_on_to_its_caller(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="the run"), shown(write_run(tmp_path / "run").paths):
        raise RuntimeError("the run")
