"""Checks of the trim schedule, against a prediction that never asks the app for its counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.runlog.telemetry import AnyRecord, Prefill, Trim
from orchestrator.verdict.check import Check, CheckInfo, Setting
from orchestrator.verdict.deviation import SCHEDULE_KINDS, DeviationKind

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.verdict.check import Closing


class TrimOnSchedule(Check):
    """Prompts, chunks, samples, trims and ends come where the contract puts them."""

    info = CheckInfo(
        id="trim.on-schedule",
        title="Trims happen when the contract says",
        meaning=(
            "The host replays the prompts it scheduled and the tokens the phone sampled through its"
            " own predictor: every chunk, row count, trim and end of a turn is where it predicts."
        ),
        causes=(
            "the budget is checked after the step instead of before it",
            "a counter is lost or counted twice when the state is remade",
            "a prompt is cut without saying so",
            "the resume after an eviction feeds another tail",
        ),
        what_to_do=(
            "compare the deciding record with the step that the sentence predicts",
            "replay the vectors of the contract in your pipeline: `fleet contract FILE`",
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._trims = 0

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        self._trims += isinstance(record, Trim)
        for deviation in self.setting.expectation.deviations:
            if deviation.kind in SCHEDULE_KINDS:
                self.faults.note(deviation.text, deviation.launch, deviation.seq)

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the number of trims, or of differences."""
        if self.faults.count:
            return self.failed(self.faults.count, "differences", 0)
        if not self._trims:
            return self.unmeasured("no trim happened and none was due")
        return self.passed(self._trims, "trims")


class TrimKeepsTail(Check):
    """What a trim keeps is the pin and the newest ids, no more and no fewer."""

    info = CheckInfo(
        id="trim.keeps-tail",
        title="A trim keeps the pin and the newest tokens",
        meaning=(
            "The counts a trim states and the ids that are fed into the new state after it are the"
            " pinned prefix and the tail of the predicted context."
        ),
        causes=(
            "the head is kept instead of the tail",
            "the tail is off by one",
            "the beginning-of-sequence id is dropped or doubled",
        ),
        what_to_do=(
            "compare the ids of the `prefill` for `trim` with the last ids before the trim",
            "keep pin and tail as one list and slice it once",
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._chunks = 0

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        self._chunks += isinstance(record, Prefill) and record.purpose == "trim"
        for deviation in self.setting.expectation.deviations:
            if deviation.kind is DeviationKind.TRIM_KEPT:
                self.faults.note(deviation.text, deviation.launch, deviation.seq)

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the number of chunks compared, or of differences."""
        if self.faults.count:
            return self.failed(self.faults.count, "differences", 0)
        if not self._chunks:
            return self.unmeasured("no trim kept anything")
        return self.passed(self._chunks, "chunks")
