"""The one way to run a tool of the toolchain: exact arguments, a deadline, a log, its environment.

`swift`, `xcodebuild`, `xcrun devicectl`, `security`, `codesign` and `xcode-select` go through here.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from orchestrator.domain.deadline import Deadline

NOT_THERE: Final = 127  # what a shell answers for a command that it does not find
TIMED_OUT: Final = 124  # what timeout(1) answers

_KEPT_LINES: Final = 50_000
_LONGEST_LINE: Final = 4000  # characters; a compiler's own command line can be much longer


class Sink(Protocol):
    """Takes a tool's output."""

    def write(self, text: str, /) -> object:
        """Take some of it."""
        ...


@dataclass(frozen=True, slots=True)
class ToolRun:
    """How a tool ended."""

    exit_code: int  # NOT_THERE and TIMED_OUT besides the tool's own; negative: by a signal
    output: str  # stdout and stderr as they came, the last `_KEPT_LINES` lines of them

    @property
    def first_line(self) -> str:
        """The first line that says something, for a one-line remark."""
        return next((line for line in self.output.splitlines() if line.strip()), "no answer")

    def tail(self, lines: int) -> str:
        """Return the last lines."""
        return "\n".join(self.output.rstrip().splitlines()[-lines:])


def run_tool(
    words: Sequence[str],
    *,
    deadline: Deadline,
    log: Path | None = None,
    sink: Sink | None = None,
    environment: Mapping[str, str] | None = None,
) -> ToolRun:
    """Run a tool to its end and return how it ended; never raises for what the tool does.

    Args:
        words: The program and its arguments, passed on as they are: no shell.
        deadline: At which the tool and its children are killed.
        log: Replaced with the command line and everything the tool says.
        sink: Gets what the tool says, as it comes.
        environment: What is added to this process's own.
    """
    kept: deque[str] = deque(maxlen=_KEPT_LINES)
    with contextlib.ExitStack() as stack:
        copy = stack.enter_context(log.open("w")) if log else None
        if copy:
            copy.write(f"$ {shlex.join(words)}\n")
        try:
            process = stack.enter_context(
                subprocess.Popen(
                    list(words),
                    stdin=subprocess.DEVNULL,  # a tool that asks a person is a tool that fails
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                    env={**os.environ, **(environment or {})},
                    start_new_session=True,  # so that the deadline ends its children too
                )
            )
        except OSError as error:
            return ToolRun(NOT_THERE, f"{words[0]}: {error.strerror}")
        with _ended_at(process, deadline):
            for line in process.stdout or ():
                if copy:
                    copy.write(line)
                if sink:
                    sink.write(line)
                kept.append(line[:_LONGEST_LINE])
    code = TIMED_OUT if deadline.passed and process.returncode < 0 else process.returncode
    return ToolRun(code, "".join(kept))


@contextlib.contextmanager
def _ended_at(process: subprocess.Popen[str], deadline: Deadline) -> Iterator[None]:
    """End the process group at the deadline, or when the body is left early."""
    timer = threading.Timer(deadline.remaining_s(), _end_group, (process,))
    timer.start()
    try:
        yield
        process.wait()
    finally:
        timer.cancel()
        if process.poll() is None:
            _end_group(process)


def _end_group(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
