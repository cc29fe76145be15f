"""How far an install or a push is, as few remarks: only what takes its time is told."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.soak.run_directory import Remark

STEP_PERCENT: Final = 5.0
EVERY_S: Final = 1.0
# The phone names stages of its own, each from 0 to 100: the upload is one half, they the other.
_UPLOADING: Final = "Uploading"


class TransferProgress:
    """Takes every step of a transfer and remarks some as `progress`.

    Args:
        what: `install` or `push`.
        remark: Where they go.
        clock: Monotonic seconds.
    """

    def __init__(
        self, what: str, remark: Remark, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what, self._remark, self._clock = what, remark, clock
        self._told_s, self._told_percent = clock(), 0.0

    def on_install(self, stage: str, percent: float) -> None:
        """Take a step of an install, as `PhoneLink.install` tells it."""
        half = min(100.0, max(0.0, percent)) / 2
        self.on_percent(half if stage == _UPLOADING else 50.0 + half)

    def on_percent(self, percent: float) -> None:
        """Take a step."""
        now_s = self._clock()
        if now_s - self._told_s < EVERY_S or percent < self._told_percent + STEP_PERCENT:
            return
        self._told_s, self._told_percent = now_s, percent
        self._remark("progress", what=self._what, percent=round(percent, 1))
