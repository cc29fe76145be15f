"""Check of the KV state's ownership: one live state, one prediction at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.runlog.telemetry import AnyRecord, Evict, Hello, Prefill, State, Tokens, Trim
from orchestrator.verdict.check import Check, CheckInfo, Setting

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.runlog.telemetry import Record
    from orchestrator.verdict.check import Closing

_AUDIT: Final = "audit"
_ANNOUNCED: Final = frozenset({"trim", "evict", "background"})  # cuts are recorded before the act
_MOST_LIVE: Final = 16  # a phone that never releases must not fill the host


class StateSerialised(Check):
    """Predictions on a state never overlap, and there is one live state, audits apart."""

    info = CheckInfo(
        id="state.serialised",
        title="One state, one prediction at a time",
        meaning=(
            "The time spans of predictions on a state never overlap, none touches a state that was"
            " released or never made, a cut is recorded before it releases its state, and at most"
            " one state lives at a time, audits apart."
        ),
        causes=(
            "a second task uses the same MLState",
            "the eviction does not wait for the prediction in flight",
            "the new state is made before the old one is released",
        ),
        what_to_do=(
            "give the state to one task: an `actor` does not help, it is reentrant at each `await`",
            "wait for the prediction in flight before the state goes",
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._predictions = 0
        self._live: dict[int, str] = {}  # id to purpose
        self._last: tuple[int, int] = (-1, -1)  # span of the latest prediction
        self._repeatable = False  # a chunk's span stands again in its first sample
        self._announced: int | None = None  # the state that a trim or an eviction will release

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        match record:
            case Tokens():
                self._on_state_use(record, record.state)
                for span in zip(record.start_ns, record.end_ns, strict=False):
                    self._on_span(record, span)
            case Prefill():
                self._on_state_use(record, record.state)
                self._on_span(record, (record.start_ns, record.end_ns))
                self._repeatable = record.purpose == "turn"
            case State(action="made"):
                self._on_made(record)
            case State(action="released"):
                self._on_released(record)
            case Trim() | Evict():
                self._on_announcement(record)
            case Hello():
                self._live.clear()
                self._announced = None
                self._last, self._repeatable = (-1, -1), False
            case _:
                pass

    def _on_span(self, record: Record, span: tuple[int, int]) -> None:
        if self._repeatable and span == self._last:
            self._repeatable = False
            return
        self._repeatable = False
        self._predictions += 1
        start_ns, end_ns = span
        if start_ns < self._last[1]:
            self.faults.add(record, "a prediction began before the one before it ended")
        if end_ns < start_ns or end_ns > record.t_ns:
            self.faults.add(record, "a prediction ended before it began or after it was recorded")
        self._last = (start_ns, max(end_ns, self._last[1]))

    def _on_state_use(self, record: Record, state: int) -> None:
        if state not in self._live:
            self.faults.add(record, f"a prediction used state {state}, which was not live")

    def _on_made(self, record: State) -> None:
        others = [purpose for purpose in self._live.values() if purpose != _AUDIT]
        if others and record.purpose != _AUDIT:
            self.faults.add(record, f"state {record.id} was made while another was live")
        if record.id in self._live:
            self.faults.add(record, f"state {record.id} was made twice")
        self._live[record.id] = record.purpose
        if len(self._live) > _MOST_LIVE:
            del self._live[next(iter(self._live))]

    def _on_released(self, record: State) -> None:
        announced, self._announced = self._announced, None
        if record.purpose in _ANNOUNCED and announced != record.id:
            text = f"state {record.id} was released for a cut that no record announced"
            self.faults.add(record, text)
        if self._live.pop(record.id, None) is None:
            self.faults.add(record, f"state {record.id} was released and was not live")
        if self._last[1] > record.t_ns:
            self.faults.add(record, f"state {record.id} was released during a prediction")

    def _on_announcement(self, record: Trim | Evict) -> None:
        self._announced = record.state
        if record.state not in self._live:
            self.faults.add(record, f"a cut names state {record.state}, which was not live")

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the number of predictions."""
        if self.faults.count:
            return self.failed(self.faults.count, "violations", 0)
        if not self._predictions:
            return self.unmeasured("no prediction was recorded")
        return self.passed(self._predictions, "predictions")
