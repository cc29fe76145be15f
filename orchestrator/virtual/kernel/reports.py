"""The crash folder of a virtual phone: reports appear late, within quotas, and are retired."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.kernel.image import CRASH_FOLDER_ON_PHONE
from orchestrator.virtual.kernel.values import LogLine

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date
    from pathlib import Path

HELPER_PID: Final = 77  # osanalyticshelper, as reports list it
REPORTS_PER_TYPE: Final = 25  # older ones go to `Retired`
LIMIT_REPORTS_PER_DAY: Final = 10  # generous: iOS seems to keep far fewer
RETIRED: Final = "Retired"


class ReportMode(StrEnum):
    """What becomes of the next reports."""

    WHOLE = "whole"
    HALF = "half"  # the first half; the rest follows after another delay
    CORRUPT = "corrupt"  # some bytes are wrong
    MISSING = "missing"  # never written


@dataclass(slots=True)
class ReportPolicy:
    """How a phone writes reports; changed while it runs."""

    delay_s: float = 0.0  # from a death to its file
    limit_per_day: int = LIMIT_REPORTS_PER_DAY  # JetsamEvents for the per-process limit
    mode: ReportMode = ReportMode.WHOLE
    synced: bool = False  # reports are uploaded: `.synced` is appended after another delay
    seed: int = 0  # of the wrong bytes


class DailyQuota:
    """Grants a number of reports per day, as iOS limits JetsamEvents of its low priority."""

    def __init__(self, policy: ReportPolicy) -> None:
        self._policy = policy
        self._day: date | None = None
        self._taken = 0

    def take(self, day: date) -> bool:
        """Return whether one more report may be written on `day`, and count it if so."""
        if day != self._day:
            self._day, self._taken = day, 0
        if self._taken >= self._policy.limit_per_day:
            return False
        self._taken += 1
        return True


@dataclass(frozen=True, slots=True)
class _Pending:
    """A report that has its name and not yet its file."""

    kind: str
    name: str
    data: bytes


class ReportFolder:
    """Where reports appear. One writer; call it in the event loop."""

    def __init__(self, folder: Path, log: Callable[[LogLine], None], policy: ReportPolicy) -> None:
        self._folder, self._log, self._policy = folder, log, policy
        self._saved: dict[str, list[str]] = {}  # names by type, oldest first
        self._reserved: set[str] = set()
        self._timers: dict[asyncio.TimerHandle, Callable[[], None]] = {}

    def save(self, kind: str, stem: str, text: str) -> str | None:
        """Save one report after the policy's delay, and announce it then.

        Args:
            kind: Type as the log names it, `309(com.example.app)`.
            stem: File name without `.ips`; may come from an app's name.
            text: The report.

        Returns:
            The file name, or None if none will be written.
        """
        if self._policy.mode is ReportMode.MISSING:
            return None
        try:
            name = self._free_name(stem.replace("/", ":"))
        except (OSError, ValueError) as error:
            self._announce(f"Failed to save type '{kind}' report: {error}")
            return None
        data = text.encode("utf-8", "replace")
        if self._policy.mode is ReportMode.CORRUPT:
            data = corrupted(data, self._policy.seed)
        self._reserved.add(name)
        pending = _Pending(kind, name, data)
        self._later(lambda: self._appear(pending))
        return name

    def flush(self) -> None:
        """Write now what is still to come: the phone is switched off."""
        while self._timers:
            timer, act = self._timers.popitem()
            timer.cancel()
            act()

    def retire_all(self) -> None:
        """Move every report to `Retired`, as a phone does with old ones."""
        for names in self._saved.values():
            while names:
                self._retire(names.pop(0))

    def sync_all(self) -> None:
        """Append `.synced` to every report, as after an upload."""
        for names in self._saved.values():
            for name in names:
                self._sync(name)

    def _later(self, act: Callable[[], None]) -> None:
        """Do something after the delay, or at once where there is none."""
        if self._policy.delay_s <= 0:
            act()
            return
        timer: asyncio.TimerHandle

        def due() -> None:
            self._timers.pop(timer, None)
            act()

        timer = asyncio.get_running_loop().call_later(self._policy.delay_s, due)
        self._timers[timer] = act

    def _appear(self, report: _Pending) -> None:
        self._reserved.discard(report.name)
        half = self._policy.mode is ReportMode.HALF
        if not self._store(report, report.data[: len(report.data) // 2] if half else report.data):
            return
        if half:
            self._later(lambda: self._complete(report))
        names = self._saved.setdefault(report.kind, [])
        names.append(report.name)
        place, count = f"{CRASH_FOLDER_ON_PHONE}/{report.name}", len(names)
        self._announce(
            f"Saved type '{report.kind}' report ({count} of max {REPORTS_PER_TYPE}) as {place}"
        )
        if count > REPORTS_PER_TYPE:
            self._retire(names.pop(0))
        if self._policy.synced:
            self._later(lambda: self._sync(report.name))

    def _complete(self, report: _Pending) -> None:
        self._store(report, report.data)

    def _store(self, report: _Pending, data: bytes) -> bool:
        """Write beside the folder and move in, so that nobody copies half by accident."""
        pending = self._folder.with_name(f".{self._folder.name}.pending")
        try:
            pending.mkdir(exist_ok=True)
            draft = pending / report.name
            draft.write_bytes(data)
            draft.rename(self._folder / report.name)
        except OSError as error:
            self._announce(f"Failed to save type '{report.kind}' report: {error}")
            return False
        return True

    def _retire(self, name: str) -> None:
        self._move(name, f"{RETIRED}/{name}")

    def _sync(self, name: str) -> None:
        self._move(name, f"{name}.synced")

    def _move(self, name: str, target: str) -> None:
        source = self._folder / name
        if source.exists():  # a host may have erased or moved it
            (self._folder / target).parent.mkdir(exist_ok=True)
            source.rename(self._folder / target)

    def _free_name(self, stem: str) -> str:
        """Return a name that nothing has: two reports of one second get numbers.

        Raises:
            OSError: If the folder is gone, or the host takes no such name.
            ValueError: The same.
        """
        self._folder.stat()
        if "\0" in stem:  # `exists` takes it for a file that is not there
            raise ValueError("a NUL in the name")
        name, number = f"{stem}.ips", 2
        while name in self._reserved or (self._folder / name).exists():
            name = f"{stem}.{number:04d}.ips"
            number += 1
        return name

    def _announce(self, text: str) -> None:
        self._log(LogLine(HELPER_PID, "osanalyticshelper", "OSAnalytics", text))


def corrupted(data: bytes, seed: int) -> bytes:
    """Return the bytes with one in twenty replaced, the same for the same seed."""
    source, damaged = random.Random(seed), bytearray(data)  # noqa: S311 - no secret
    for _ in range(max(1, len(data) // 20)):
        damaged[source.randrange(len(data))] = source.randrange(256)
    return bytes(damaged)
