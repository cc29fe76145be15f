"""The conditions channel: what the phone's kernel tells the app on stdin, and the phone's end."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Final, Protocol

from orchestrator.harness.standin.fields import FieldError, Fields

if TYPE_CHECKING:
    from collections.abc import Callable

PHONE_GONE_STATUS: Final = 18
THERMAL_STATES: Final = ("nominal", "fair", "serious", "critical")
_MOST_LINE_BYTES: Final = 64 * 1024
_PR_SET_PDEATHSIG: Final = 1


class ConditionsTarget(Protocol):
    """What happens to the app on a condition."""

    def memory_warning(self) -> None:
        """The kernel warns of memory pressure."""

    def thermal(self, state: str) -> None:
        """The thermal state is `nominal`, `fair`, `serious` or `critical`."""

    def battery(self, level_percent: int, *, charging: bool) -> None:
        """The battery has this charge."""

    def foreground(self, *, value: bool) -> None:
        """The app entered or left the foreground."""

    def low_power(self, *, value: bool) -> None:
        """Low power mode was switched."""


def deliver(line: bytes, target: ConditionsTarget) -> None:
    """Pass one line of the channel on; unknown events and malformed lines are ignored."""
    try:
        event = Fields(json.loads(line), "condition")
        _deliver_event(event, target)
    except (FieldError, ValueError, RecursionError):
        return


def _deliver_event(event: Fields, target: ConditionsTarget) -> None:
    match event.text("event"):
        case "memory_warning":
            target.memory_warning()
        case "thermal":
            target.thermal(event.text("state", THERMAL_STATES))
        case "battery":
            target.battery(event.integer("level_percent", 0, 100), charging=event.flag("charging"))
        case "foreground":
            target.foreground(value=event.flag("value"))
        case "low_power":
            target.low_power(value=event.flag("value"))
        case _:
            return


def watch(descriptor: int, target: ConditionsTarget, phone_gone: Callable[[], None]) -> None:
    """Start a thread that reads the channel until its end.

    Args:
        descriptor: The channel, read raw: a buffered reader would hold a lock while Python exits.
        target: Gets the conditions.
        phone_gone: Called at end of file.
    """
    thread = threading.Thread(
        target=_read, args=(descriptor, target, phone_gone), name="conditions", daemon=True
    )
    thread.start()


def _read(descriptor: int, target: ConditionsTarget, phone_gone: Callable[[], None]) -> None:
    rest = b""
    while piece := os.read(descriptor, _MOST_LINE_BYTES):
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > _MOST_LINE_BYTES:
            rest = b""
        for line in lines:
            deliver(line, target)
    phone_gone()


def die_with_parent(parent_pid: int) -> bool:
    """Have the kernel end this process with its parent; return False where the parent is gone.

    Linux only: elsewhere the end of stdin alone says that the phone is gone. A stopped process does
    not read stdin, so both are needed. Armed only where the parent is the phone itself.
    """
    if os.getppid() != parent_pid:
        return _is_alive(parent_pid)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    return os.getppid() == parent_pid  # it may have ended before the call


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
