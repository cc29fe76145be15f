"""Check of the app's own counting: rows it claims are rows it has fed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.runlog.telemetry import (
    AnyRecord,
    Evict,
    Hello,
    Prefill,
    State,
    Tokens,
    Trim,
    TurnStart,
)
from orchestrator.verdict.check import Check, CheckInfo, Setting

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.runlog.telemetry import Record
    from orchestrator.verdict.check import Closing

_AUDIT = "audit"  # a state of its own


class TrimCountConsistent(Check):
    """Every row count is what was fed into the present state, trims included."""

    info = CheckInfo(
        id="trim.count-consistent",
        title="The row count survives a trim",
        meaning=(
            "The rows that chunks, samples, trims and evictions claim are the ids that were fed"
            " into the present state since it was made: after a trim the count is what was kept."
        ),
        causes=(
            "the counter is not set to what the trim kept",
            "the counter is reset although the tail was fed again",
            "a token is counted when it is sampled and again when it is fed",
        ),
        what_to_do=(
            "set the row count to what was fed into the new state; count a token when it is fed",
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._trims = 0
        self._fed = 0  # rows of the present state, by what was fed
        self._state: int | None = None  # None: the next state is not known yet
        self._sampled = False  # the turn has a sample: the next one follows a decode

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        match record:
            case Prefill() if record.purpose != _AUDIT:
                self._enter(record.state)
                self._claim(record, record.start)
                self._fed += len(record.ids)
            case Tokens():
                self._on_tokens(record)
            case Trim() | Evict():
                self._trims += isinstance(record, Trim)
                self._claim(record, record.before)
            case TurnStart():
                self._sampled = False
            case State(action="released") if record.purpose != _AUDIT:
                self._fed, self._state = 0, None
            case Hello():
                self._fed, self._state, self._sampled = 0, None, False
            case _:
                pass

    def _enter(self, state: int) -> None:
        """A chunk in another state starts from nothing, whether its making was recorded or not."""
        if self._state is not None and state != self._state:
            self._fed = 0
        self._state = state

    def _on_tokens(self, record: Tokens) -> None:
        for claimed in record.n:
            self._fed += self._sampled
            self._sampled = True
            self._claim(record, claimed)

    def _claim(self, record: Record, claimed: int) -> None:
        if claimed == self._fed:
            return
        text = f"{claimed} rows are claimed; {self._fed} were fed into the state"
        self.faults.add(record, text, claimed - self._fed)
        self._fed = claimed  # one mistake is not reported again at every later row

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the number of trims, or of wrong counts."""
        if self.faults.count:
            return self.failed(self.faults.count, "wrong counts", 0)
        if not self._trims:
            return self.unmeasured("no trim happened")
        return self.passed(self._trims, "trims")
