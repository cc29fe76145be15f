"""The run that is served: read once for all who look, at most once a second."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from orchestrator.live.follower import RunFollower
from orchestrator.runlog.layout import RunPaths

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orchestrator.live.state import RunLive
    from orchestrator.runlog.documents import RunDocument

LOOK_EVERY_S: Final = 1.0


class RunSource:
    """Safe to call from several threads.

    Args:
        folder: Says which run directory it is, each time anew: the latest run may be another one.
        owner_lives: Says whether the process of a run that has not ended is there.
    """

    def __init__(
        self, folder: Callable[[], Path], owner_lives: Callable[[RunDocument], bool]
    ) -> None:
        self._folder, self._owner_lives = folder, owner_lives
        self._lock = threading.Lock()
        self._root: Path | None = None
        self._follower: RunFollower | None = None
        self._seen: tuple[float, RunLive] | None = None  # when, by the monotonic clock

    def look(self) -> RunLive:
        """Return the run as it was less than a second ago.

        Raises:
            RunDirectoryError: If there is no run, or it has no plan yet.
        """
        with self._lock:
            now_s = time.monotonic()
            if self._seen is not None and now_s - self._seen[0] < LOOK_EVERY_S:
                return self._seen[1]
            self._seen = None
            root = self._folder()
            if self._follower is None or root != self._root:
                self._root = root
                self._follower = RunFollower(RunPaths(root), self._owner_lives)
            run = self._follower.look(time.time())
            self._seen = (now_s, run)
            return run

    def report(self) -> bytes | None:
        """Return the page of the run's report, None where there is none (yet)."""
        try:
            return RunPaths(self._folder()).html.read_bytes()
        except OSError:
            return None
