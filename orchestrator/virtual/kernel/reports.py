"""The crash folder of a virtual phone: saves reports whole, within a quota, and says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.virtual.kernel.image import CRASH_FOLDER_ON_PHONE
from orchestrator.virtual.kernel.values import LogLine

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date
    from pathlib import Path

HELPER_PID: Final = 77  # osanalyticshelper, as reports list it
REPORTS_PER_TYPE: Final = 25


class DailyQuota:
    """Grants a number of reports per day, as iOS limits JetsamEvents of its low priority."""

    def __init__(self, per_day: int) -> None:
        self._per_day = per_day
        self._day: date | None = None
        self._taken = 0

    def take(self, day: date) -> bool:
        """Return whether one more report may be written on `day`, and count it if so."""
        if day != self._day:
            self._day, self._taken = day, 0
        if self._taken >= self._per_day:
            return False
        self._taken += 1
        return True


class ReportFolder:
    """Where reports appear. One writer."""

    def __init__(self, folder: Path, log: Callable[[LogLine], None]) -> None:
        self._folder, self._log = folder, log
        self._saved: dict[str, int] = {}  # by type

    def save(self, kind: str, stem: str, text: str) -> str | None:
        """Save one report and announce it.

        The file is written beside the folder and moved into it, so that nobody copies half of it.

        Args:
            kind: Type as the log names it, `309(com.example.app)`.
            stem: File name without `.ips`; may come from an app's name.
            text: The report.

        Returns:
            The file name, or None if the host could not store it.
        """
        pending = self._folder.with_name(f".{self._folder.name}.pending")
        try:
            pending.mkdir(exist_ok=True)
            path = self._free_path(stem.replace("/", ":"))
            draft = pending / path.name
            draft.write_text(text, encoding="utf-8", errors="replace")
            draft.rename(path)
        except (OSError, ValueError) as error:
            self._announce(f"Failed to save type '{kind}' report: {error}")
            return None
        count = self._saved[kind] = self._saved.get(kind, 0) + 1
        place = f"{CRASH_FOLDER_ON_PHONE}/{path.name}"
        self._announce(f"Saved type '{kind}' report ({count} of max {REPORTS_PER_TYPE}) as {place}")
        return path.name

    def _free_path(self, stem: str) -> Path:
        """Return a path that nothing has: two reports of one second get numbers."""
        path = self._folder / f"{stem}.ips"
        number = 2
        while path.exists():
            path = self._folder / f"{stem}.{number:04d}.ips"
            number += 1
        return path

    def _announce(self, text: str) -> None:
        self._log(LogLine(HELPER_PID, "osanalyticshelper", "OSAnalytics", text))
