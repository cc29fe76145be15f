"""`fleet watch` on a terminal, and where there is none."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from typing import TYPE_CHECKING

import pytest

from orchestrator.runlog.files import write_document
from tests.end_to_end.fleet_process import FLEET, environment
from tests.live.phones import summary
from tests.report.runs import write_run

if TYPE_CHECKING:
    from pathlib import Path

SYNCHRONIZED = "\x1b[?2026h"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = write_run(tmp_path_factory.mktemp("watched") / "run")
    write_document(written.paths.summary_json, summary("PASS", "completed"))
    return written.root


def on_terminal(folder: Path, run: Path, **changes: str) -> str:
    """What `fleet watch` writes to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    given = environment(folder, **{"TERM": "xterm", "PYTHONUTF8": "1", **changes})
    given = {name: value for name, value in given.items() if value}
    done = subprocess.Popen(
        [str(FLEET), "watch", str(run)],
        env=given,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = b""
    try:
        while chunk := os.read(ours, 65536):
            written += chunk
    except OSError:  # Linux: the other side is closed
        pass
    os.close(ours)
    assert done.wait(30) == 0, written
    return written.decode()


def test_a_terminal_gets_the_table(tmp_path: Path, run: Path) -> None:
    written = on_terminal(tmp_path, run, NO_COLOR="")
    assert written.startswith(SYNCHRONIZED)
    assert "ran/left" in written
    assert written.endswith("\x1b[?25h\x1b[?2026l")


def test_a_terminal_that_shall_stay_plain_gets_lines(tmp_path: Path, run: Path) -> None:
    written = on_terminal(tmp_path, run, NO_COLOR="", CI="1")
    assert "\x1b" not in written
    lines = [line.split(" ", 1)[1] for line in written.splitlines()]
    assert lines == ["run run: PASS, test (virtual, stand-in app)", "desk-15pro: PASS"]
