"""Ends a keeper with the process that wanted it, and detaches it from everything else.

On Linux the kernel sends SIGKILL when the parent dies. On every system the keeper's stdin is a
pipe whose other end only the parent holds: end of file means that the parent is gone. The pipe is
all there is on a Mac (from its documentation, not run there).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

import anyio

_PR_SET_PDEATHSIG: Final = 1
_STDIN: Final = 0


def die_with(parent_pid: int) -> None:
    """Ask the kernel for SIGKILL when the parent dies; Linux only, elsewhere nothing happens.

    Raises:
        ProcessLookupError: If the parent is gone already, so that no signal would come.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent_pid:
        raise ProcessLookupError(f"parent {parent_pid} is gone")


async def stdin_closed() -> None:
    """Return when the other end of stdin is closed."""
    os.set_blocking(_STDIN, False)
    while True:
        await anyio.wait_readable(_STDIN)
        try:
            if not os.read(_STDIN, 4096):
                return
        except BlockingIOError:
            continue
        except OSError:
            return
