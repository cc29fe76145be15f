"""What interrupts the pipeline: memory warnings, leaving the foreground, the end of the soak.

Other threads raise it, the pipeline's thread answers it between two predictions. One lock makes
"a warning is recorded" and "an eviction lists it" exclude each other: no warning is lost between.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Interruption:
    """Why the state has to go."""

    reason: str  # `memory_warning` or `background`
    warnings: list[int]  # `n` of the warnings this answers


class Pressure:
    """The interruptions of one launch. Thread-safe."""

    def __init__(self, *, deaf: bool = False) -> None:
        """Start in the foreground.

        Args:
            deaf: The defect `no-evict`: warnings are recorded and never answered.
        """
        self._changed = threading.Condition(threading.RLock())
        self._deaf = deaf
        self._unanswered: list[int] = []
        self._state_alive = False
        self._stop_reason: str | None = None
        self.foreground = True

    @property
    def lock(self) -> threading.Condition:
        """Held while a state is made, released or evicted."""
        return self._changed

    @property
    def stop_reason(self) -> str | None:
        """Why the soak is to end, None while it is not."""
        return self._stop_reason

    @property
    def interrupts(self) -> bool:
        """Whether a state is alive that has to be released."""
        return self._state_alive and bool(self._unanswered or not self.foreground)

    def warn(self, record: Callable[[], int]) -> None:
        """Take a memory warning.

        Args:
            record: Writes its `memory_warning` record and returns its `n`.
        """
        with self._changed:
            number = record()
            # With no state there is nothing to evict: the record is all (R7).
            if self._state_alive and not self._deaf:
                self._unanswered.append(number)

    def set_foreground(self, value: bool, record: Callable[[], object]) -> None:
        """Take the app's move to the foreground or background.

        Args:
            value: Whether the app is in the foreground now.
            record: Writes the `lifecycle` record; not called where nothing changes.
        """
        with self._changed:
            if self.foreground == value:
                return
            record()
            self.foreground = value
            self._changed.notify_all()

    def stop(self, reason: str) -> None:
        """End the soak before its next step; the first reason stays."""
        with self._changed:
            self._stop_reason = self._stop_reason or reason
            self._changed.notify_all()

    def wait_for_foreground(self) -> bool:
        """Return True in the foreground, False where the soak ends before the app is back."""
        with self._changed:
            self._changed.wait_for(lambda: self.foreground or self._stop_reason is not None)
            return self.foreground

    def state_made(self) -> None:
        """Note that a state is alive."""
        with self._changed:
            self._state_alive = True

    def state_released(self) -> None:
        """Note that no state is alive."""
        with self._changed:
            self._state_alive = False

    def take(self) -> Interruption:
        """Return what interrupts, answered by the eviction that the caller performs now."""
        with self._changed:
            warnings, self._unanswered = self._unanswered, []
            return Interruption("memory_warning" if warnings else "background", warnings)
