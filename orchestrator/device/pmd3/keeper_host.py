"""Forks keepers: the library is imported once, each keeper shares its pages. Linux only.

`python -m orchestrator.device.pmd3.keeper_host` reads one `KeeperOptions` per line on stdin and
answers each with `Started` or `NotStarted`; end of file ends it. It has no thread and no event
loop, so that a fork is safe; each keeper makes its own loop.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from orchestrator.device.keeper.parent import die_with
from orchestrator.device.keeper.start import KeeperOptions, NotStarted, Started
from orchestrator.device.pmd3.keeper import Claimed, claimed_or_reason, keep

if TYPE_CHECKING:
    from types import FrameType

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_FAILED: Final = 70  # EX_SOFTWARE


class Lifeline:
    """A pipe whose writing end only this process holds: keepers read its end of file."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()

    def become_stdin(self) -> None:
        """In a forked keeper: hold on to the reading end alone."""
        os.dup2(self._reader, _STDIN)
        os.close(self._reader)
        os.close(self._writer)


def main() -> int:
    """Serve until stdin ends."""
    lifeline = Lifeline()
    signal.signal(signal.SIGCHLD, _reap)
    # What is alive now is never collected, so that collections do not copy shared pages.
    gc.freeze()
    while line := sys.stdin.buffer.readline():
        answer = _answer(line, lifeline)
        os.write(_STDOUT, msgspec.json.encode(answer) + b"\n")
    return 0


def _answer(line: bytes, lifeline: Lifeline) -> Started | NotStarted:
    try:
        options = msgspec.json.decode(line, type=KeeperOptions)
    except msgspec.DecodeError as error:
        return NotStarted(f"the keeper's options cannot be read: {error}")
    claimed = claimed_or_reason(options)
    return claimed if isinstance(claimed, NotStarted) else _forked(options, claimed, lifeline)


def _forked(options: KeeperOptions, claimed: Claimed, lifeline: Lifeline) -> Started:
    host_pid = os.getpid()
    pid = os.fork()
    if pid == 0:
        _keeper(options, claimed, lifeline, host_pid)
    claimed.let_go()
    return Started(pid)


def _keeper(
    options: KeeperOptions, claimed: Claimed, lifeline: Lifeline, host_pid: int
) -> NoReturn:
    status = _FAILED
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        log = os.open(claimed.place.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(log, _STDOUT)
        os.dup2(log, _STDERR)
        os.close(log)
        lifeline.become_stdin()
        if options.die_with_parent:
            die_with(host_pid)
        keep(options, claimed)
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        raise
    finally:
        # Never back into the host's loop, which would read the host's stdin.
        os._exit(status)


def _reap(_signal: int, _frame: FrameType | None) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    sys.exit(main())
