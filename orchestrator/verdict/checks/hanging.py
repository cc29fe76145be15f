"""Check that the app never stands still while it says that it lives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.domain.outcome import Cause
from orchestrator.runlog.telemetry import (
    AnyRecord,
    Bye,
    Heartbeat,
    Hello,
    Lifecycle,
    Load,
    Prefill,
    Sample,
    Tokens,
)
from orchestrator.verdict.check import Check, CheckInfo, Limit, Setting
from orchestrator.verdict.tally import NS_PER_S

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.verdict.check import Closing


class HangNone(Check):
    """Predictions go on for as long as the app lives."""

    info = CheckInfo(
        id="hang.none",
        title="The app never stops predicting while it lives",
        meaning=(
            "Between the load of the model and the farewell no time over the limit passes in the"
            " foreground without a prediction, by the app's own heartbeats and samples: an app that"
            " is silent altogether is a matter of telemetry.complete."
        ),
        causes=(
            "a deadlock between the decode loop and a handler",
            "a prediction that never returns from the Neural Engine",
            "the consumer of the stream stops reading and the loop waits for it",
        ),
        what_to_do=(
            "look at the last breadcrumb before the silence",
            "take a spindump, or pause the app in the debugger, where it happens again",
        ),
        limits=(Limit("no_token_limit_s", 30.0, "s", "the longest time without a prediction"),),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._limit_s = self.limit("no_token_limit_s")
        self._since_ns: int | None = None  # the latest progress, None before the load
        self._suspended_s = 0.0
        self._asleep_s = 0.0  # since the latest progress
        self._longest_s: float | None = None
        self._blamed = False  # this standstill was

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        match record:
            case Hello():
                self._since_ns, self._suspended_s = None, 0.0
            case Load() | Lifecycle():
                self._progress(record.t_ns)
            case Prefill() | Tokens() | Bye():
                self._judge(record)
                self._progress(record.t_ns)
            case Heartbeat():
                self._asleep_s += max(0.0, record.suspended_s - self._suspended_s)
                self._suspended_s = record.suspended_s
                self._judge(record)
            case Sample() if record.foreground:
                self._judge(record)
            case Sample():
                self._progress(record.t_ns)  # in the background nothing is to be predicted
            case _:
                pass

    def _progress(self, t_ns: int) -> None:
        self._since_ns, self._asleep_s, self._blamed = t_ns, 0.0, False

    def _judge(self, record: AnyRecord) -> None:
        if self._since_ns is None:
            return
        still_s = (record.t_ns - self._since_ns) / NS_PER_S - self._asleep_s
        self._longest_s = max(still_s, self._longest_s or 0.0)
        if still_s > self._limit_s and not self._blamed:
            self.faults.add(record, f"alive and without a prediction for {still_s:.1f} s", still_s)
            self._blamed = True

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the longest time without a prediction."""
        if closing.diagnosis.cause is Cause.HANG and not self.faults.count:
            place = (closing.tally.launch, closing.tally.last_seq)
            self.faults.note(closing.diagnosis.sentence, *place)
        longest_s = None if self._longest_s is None else round(self._longest_s, 3)
        if self.faults.count:
            return self.failed(longest_s, "s", self._limit_s)
        if longest_s is None:
            return self.unmeasured("the app never came to a prediction")
        return self.passed(longest_s, "s", self._limit_s)
