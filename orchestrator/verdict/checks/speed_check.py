"""What all checks of speed have in common.

Speed is judged apart for each thermal state of the phone: what heat takes is no defect of the app,
and what is lost without heat is one. On a virtual phone the speed is its host's, so the checks are
skipped unless the scenario asks for them.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final

from orchestrator.verdict.check import Check, Limit, Setting

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.runlog.telemetry import AnyRecord
    from orchestrator.verdict.check import Closing
    from orchestrator.verdict.pace import Step

WARM_UP: Final = Limit("warm_up_tokens", 128.0, "tokens", "of each launch, left out")
_NOT_ON_VIRTUAL: Final = "virtual: the speed of a virtual phone is its host's"


class SpeedCheck(Check):
    """Takes the decode steps after the warm-up."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._warm_up = self.limit(WARM_UP.name)
        self._last_place: tuple[str, int] | None = None

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        for step in self.setting.pace.steps:
            if step.ordinal > self._warm_up:
                self._last_place = (record.launch, record.seq)
                self._take(step, self.setting.pace.thermal)

    @abstractmethod
    def _take(self, step: Step, thermal: str) -> None:
        """Take a decode step after the warm-up."""

    @abstractmethod
    def _judge(self) -> CheckDocument:
        """Return the result where speed is to be judged."""

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result."""
        if self.setting.phone.virtual and not self.setting.plan.requires.virtual_speed:
            return self.skipped(_NOT_ON_VIRTUAL)
        return self._judge()

    def _blame(self, text: str) -> None:
        self.faults.note(text, *(self._last_place or (None, None)))
