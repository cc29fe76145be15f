"""Check that a trimmed context predicts what a freshly fed one does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.runlog.telemetry import AnyRecord, Hello, Parity, State
from orchestrator.verdict.check import Check, CheckInfo, Limit, Setting

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.verdict.check import Closing


class TrimParity(Check):
    """Audits find the same logits in the state in use and in one that was fed afresh."""

    info = CheckInfo(
        id="trim.parity",
        title="The logits after a trim are those of a fresh state",
        meaning=(
            "At each audit the context is fed into a state of its own; its logits and those of the"
            " state in use differ by less than the limit and agree on what comes first. Audits"
            " without a trim before them are judged too, and alone prove nothing about trims."
        ),
        causes=(
            "positions are not counted anew after the trim",
            "a mask still covers the rows that were dropped",
            "half precision: the error of many steps adds up in the cache",
        ),
        what_to_do=(
            "feed the same context into a fresh state on a Mac and compare the logits there",
            "check positions and mask after a trim",
        ),
        limits=(
            Limit("max_abs_logit", 0.5, "logits", "the largest difference of one id"),
            Limit("min_top5_overlap", 0.6, "of five", "ids that both have among the first five"),
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._most = self.limit("max_abs_logit")
        self._least_overlap = self.limit("min_top5_overlap")
        self._trimmed = False  # the state in use was made by a trim
        self._after_trims = 0
        self._largest = 0.0

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        match record:
            case Hello():
                self._trimmed = False
            case State(action="made") if record.purpose not in {"audit", "reload"}:
                self._trimmed = record.purpose == "trim"
            case Parity():
                self._judge(record)
            case _:
                pass

    def _judge(self, record: Parity) -> None:
        self._after_trims += self._trimmed
        self._largest = max(self._largest, record.max_abs)
        if not record.max_abs <= self._most:  # a NaN is no number below the limit
            text = f"a logit differs by {record.max_abs:g} from that of a fresh state"
            self.faults.add(record, text, record.max_abs)
        elif not record.top3_contained or record.top5_overlap < self._least_overlap:
            text = f"the first ids differ: {record.top5_overlap:.0%} of the first five are common"
            self.faults.add(record, text, record.max_abs)

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the largest difference."""
        if self.faults.count:
            return self.failed(self.faults.value, "logits", self._most)
        if not self._after_trims:
            return self.unmeasured("no audit compared a context that had been trimmed")
        remark = f"{self._after_trims} audits after a trim"
        return self.passed(round(self._largest, 6), "logits", self._most, remark)
