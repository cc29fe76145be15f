"""Processes of iOS itself: daemons, SpringBoard and Apple's apps.

They are rows in a table, not processes of the host: they are listed, they can be signalled, and
they stand in JetsamEvents beside the app. Names, paths and order of priority follow published
process lists and reports.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

IDLE_PRIORITY: Final = 0
APP_PRIORITY: Final = 100

_FIRST_NEW_PID: Final = 300
_APP_PAGES: Final = 9_000


@dataclass(frozen=True, slots=True)
class SystemProcess:
    """One row."""

    name: str
    path: str  # on the phone
    pid: int
    pages: int  # resident, of 16 KiB
    priority: int
    states: tuple[str, ...]
    started_s: float = 0.0  # Unix time
    bundle_id: str | None = None  # of Apple's apps

    @property
    def is_idle(self) -> bool:
        """Whether memory pressure takes it first."""
        return "idle" in self.states


_LIBEXEC: Final = "/usr/libexec"
_FRAMEWORKS: Final = "/System/Library/PrivateFrameworks"
_DAEMON: Final = ("daemon",)
_ACTIVE: Final = ("daemon", "active")
_IDLE: Final = ("daemon", "idle")

# name, folder, pid, pages, priority, states
_ROWS: Final = (
    ("kernel_task", "", 0, 61_443, 0, ()),
    ("launchd", "/sbin", 1, 1_180, 190, _DAEMON),
    ("logd", _LIBEXEC, 29, 1_310, 180, _DAEMON),
    ("UserEventAgent", _LIBEXEC, 30, 520, 180, _DAEMON),
    ("notifyd", "/usr/sbin", 31, 210, 180, _DAEMON),
    ("runningboardd", _LIBEXEC, 33, 912, 180, _DAEMON),
    ("SpringBoard", "/System/Library/CoreServices/SpringBoard.app", 34, 14_336, 160, _ACTIVE),
    ("configd", _LIBEXEC, 36, 730, 180, _DAEMON),
    ("wifid", "/usr/sbin", 45, 980, 120, _ACTIVE),
    ("powerd", "/System/Library/CoreServices/powerd.bundle", 48, 310, 180, _DAEMON),
    ("thermalmonitord", _LIBEXEC, 52, 390, 180, _DAEMON),
    ("remoted", _LIBEXEC, 58, 450, 120, _DAEMON),
    ("lockdownd", _LIBEXEC, 63, 640, 120, _DAEMON),
    ("backboardd", _LIBEXEC, 66, 4_608, 170, _ACTIVE),
    ("locationd", _LIBEXEC, 70, 1_536, 110, _ACTIVE),
    ("CommCenter", f"{_FRAMEWORKS}/CoreTelephony.framework/Support", 72, 1_720, 170, _ACTIVE),
    ("osanalyticshelper", _LIBEXEC, 77, 420, 40, _DAEMON),
    ("mediaserverd", "/usr/sbin", 81, 2_304, 120, _DAEMON),
    ("bluetoothd", "/usr/sbin", 84, 1_240, 120, _ACTIVE),
    ("assetsd", f"{_FRAMEWORKS}/PhotoLibraryServices.framework/Support", 88, 1_792, 0, _IDLE),
    ("apsd", f"{_FRAMEWORKS}/ApplePushService.framework", 90, 860, 120, _DAEMON),
    ("amfid", _LIBEXEC, 95, 330, 120, _DAEMON),
    ("trustd", _LIBEXEC, 98, 610, 40, _DAEMON),
    ("installd", _LIBEXEC, 102, 540, 40, _DAEMON),
    ("identityservicesd", f"{_FRAMEWORKS}/IDS.framework", 110, 1_150, 40, _DAEMON),
    ("dasd", _LIBEXEC, 114, 880, 40, _DAEMON),
    ("searchd", f"{_FRAMEWORKS}/CoreSpotlight.framework", 121, 1_630, 0, _IDLE),
    ("suggestd", f"{_FRAMEWORKS}/CoreSuggestions.framework", 133, 1_410, 0, _IDLE),
    ("photoanalysisd", f"{_FRAMEWORKS}/PhotoAnalysis.framework/Support", 140, 2_050, 0, _IDLE),
    ("calaccessd", f"{_FRAMEWORKS}/CalendarDaemon.framework/Support", 147, 690, 0, _IDLE),
    ("itunescloudd", f"{_FRAMEWORKS}/iTunesCloud.framework/Support", 152, 940, 0, _IDLE),
    ("healthd", f"{_FRAMEWORKS}/HealthDaemon.framework/Support", 158, 1_020, 0, _IDLE),
)


class SystemProcesses:
    """Which of them run, since one boot."""

    def __init__(self, boot_time_s: float, is_taken: Callable[[int], bool]) -> None:
        """Start all daemons.

        Args:
            boot_time_s: Unix time.
            is_taken: Whether a process of the host, which runs as an app, has a pid already.
        """
        self._is_taken = is_taken
        self._last_pid = _FIRST_NEW_PID
        self._rows: dict[int, SystemProcess] = {}
        for name, folder, pid, pages, priority, states in _ROWS:
            path = f"{folder}/{name}" if folder else name
            row = SystemProcess(name, path, pid, pages, priority, states, boot_time_s)
            self._rows[pid] = row

    def running(self) -> list[SystemProcess]:
        """Return what runs, without those whose pid an app has."""
        return [row for pid, row in sorted(self._rows.items()) if not self._is_taken(pid)]

    def find(self, pid: int) -> SystemProcess | None:
        """Return the process of a pid."""
        return None if self._is_taken(pid) else self._rows.get(pid)

    def launch(self, bundle_id: str, name: str, path: str) -> int:
        """Start one of Apple's apps, or find it running; return its pid."""
        for row in self._rows.values():
            if row.bundle_id == bundle_id:
                return row.pid
        pid, states = self._new_pid(), ("frontmost", "active")
        self._rows[pid] = SystemProcess(
            name, path, pid, _APP_PAGES, APP_PRIORITY, states, time.time(), bundle_id
        )
        return pid

    def end(self, pid: int) -> None:
        """End a process. launchd starts a daemon again, under a new pid, unless it was idle."""
        row = self._rows.pop(pid)
        if row.bundle_id is None and not row.is_idle:
            new_pid = self._new_pid()
            self._rows[new_pid] = SystemProcess(
                row.name, row.path, new_pid, row.pages, row.priority, row.states, time.time()
            )

    def _new_pid(self) -> int:
        self._last_pid += 1
        while self._is_taken(self._last_pid):
            self._last_pid += 1
        return self._last_pid
