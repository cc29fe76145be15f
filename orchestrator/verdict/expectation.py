"""Follows a phone's records and says where they leave the contract.

Inputs are what the host cannot know beforehand: evictions, faults, cancellations, low-memory
trims, reloads and new conversations. Everything after them is predicted: each chunk, each sample's
row count and token, each trim, each turn. After a difference the expectation goes on from what the
phone claims, so that one defect is not reported at every later token. Memory is bounded by one
conversation's context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.runlog.telemetry import AnyRecord, Hello
from orchestrator.verdict.deviation import Deviation, DeviationKind
from orchestrator.verdict.follower import Follower
from orchestrator.verdict.rules import ImpossibleRulesError, launch_rules

if TYPE_CHECKING:
    from orchestrator.runlog.documents import PlannedPhone
    from orchestrator.verdict.scenario import Scenario


class Expectation:
    """The prediction for whichever launch the records belong to; shared by all checks of a pass.

    Attributes:
        deviations: Differences that the latest record shows.
        witnessed: Samples of the latest record whose token was recomputed.
        disproved: How many of those are another token than the predicted context gives.
    """

    def __init__(self, phone: PlannedPhone, scenario: Scenario) -> None:
        self._phone, self._scenario = phone, scenario
        self.deviations: list[Deviation] = []
        self.witnessed = 0
        self.disproved = 0
        self._launch: str | None = None
        self._follower: Follower | None = None

    @property
    def row_count(self) -> int:
        """Predicted rows of the state after the latest record; 0 before a `hello`."""
        return self._follower.window.row_count if self._follower else 0

    @property
    def proves_context(self) -> bool:
        """Whether the running launch has an engine whose tokens prove their context."""
        return self._follower is not None and self._follower.proves_context

    def observe(self, record: AnyRecord) -> None:
        """Take the next record; records of a launch without `hello` predict nothing."""
        self.deviations, self.witnessed, self.disproved = [], 0, 0
        if isinstance(record, Hello):
            self._begin(record)
            return
        follower = self._follower
        if follower is None or record.launch != self._launch:
            return
        follower.observe(record)
        self.deviations, follower.deviations = follower.deviations, []
        self.witnessed, follower.witnessed = follower.witnessed, 0
        self.disproved, follower.disproved = follower.disproved, 0

    def _begin(self, record: Hello) -> None:
        self._launch, self._follower = record.launch, None
        try:
            self._follower = Follower(launch_rules(record, self._phone, self._scenario))
        except (ImpossibleRulesError, ValueError) as error:
            text = str(error)
            self.deviations = [Deviation(DeviationKind.HELLO, text, record.launch, record.seq)]
