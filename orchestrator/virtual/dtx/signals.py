"""Signal numbers of Darwin, which hosts send and expect, and those of the machine we run on."""

from __future__ import annotations

import signal
from typing import Final

# Source: Darwin's sys/signal.h. Linux numbers BUS, USR1, STOP, CONT and others differently.
_DARWIN: Final = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    8: "SIGFPE",
    9: "SIGKILL",
    10: "SIGBUS",
    11: "SIGSEGV",
    12: "SIGSYS",
    13: "SIGPIPE",
    14: "SIGALRM",
    15: "SIGTERM",
    16: "SIGURG",
    17: "SIGSTOP",
    18: "SIGTSTP",
    19: "SIGCONT",
    20: "SIGCHLD",
    21: "SIGTTIN",
    22: "SIGTTOU",
    23: "SIGIO",
    24: "SIGXCPU",
    25: "SIGXFSZ",
    26: "SIGVTALRM",
    27: "SIGPROF",
    28: "SIGWINCH",
    30: "SIGUSR1",
    31: "SIGUSR2",
}
_NUMBERS: Final = {name: number for number, name in _DARWIN.items()}


def to_host(darwin: int) -> int | None:
    """Return the number that this machine gives to a signal of Darwin, None if it has none."""
    name = _DARWIN.get(darwin)
    return None if name is None else int(signal.Signals[name])


def to_darwin(host: int) -> int:
    """Return Darwin's number of a signal of this machine; unknown ones stay as they are."""
    try:
        return _NUMBERS.get(signal.Signals(host).name, host)
    except ValueError:
        return host
