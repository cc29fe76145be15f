"""A farm that a run started dies with that run, however the run ends.

Linux tells a process when its parent dies. macOS does not: there the parent's pid is polled (from
documentation, not run). End of stdin says the same on both.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_POLL_PERIOD_S: Final = 0.5


def watch_parent(parent_pid: int, on_death: Callable[[], None]) -> None:
    """Have SIGTERM sent, or `on_death` called from a thread, when the parent dies.

    Args:
        parent_pid: The process that started this one.
        on_death: Called once; at once if the parent is dead already.
    """
    if sys.platform == "linux":
        # The kernel's signal comes when the parent's *thread* ends that started this process.
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent_pid:
            on_death()
    else:
        _in_background(lambda: _poll_parent(parent_pid), on_death)


def watch_stdin(on_end: Callable[[], None]) -> None:
    """Have `on_end` called from a thread when stdin ends; what comes before is ignored."""
    _in_background(_read_to_end, on_end)


def _in_background(wait: Callable[[], None], then: Callable[[], None]) -> None:
    def run() -> None:
        wait()
        then()

    # A daemon: it may be blocked in a read when the process has to end.
    threading.Thread(target=run, daemon=True, name="parent watch").start()


def _read_to_end() -> None:
    while os.read(0, 4096):
        pass


def _poll_parent(parent_pid: int) -> None:
    while os.getppid() == parent_pid:
        time.sleep(_POLL_PERIOD_S)
