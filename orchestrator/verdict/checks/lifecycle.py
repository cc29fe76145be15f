"""Check of when states are made and released: for a reason each, and never two at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.runlog.telemetry import (
    AnyRecord,
    Bye,
    Evict,
    Hello,
    State,
    Trim,
    TurnEnd,
    TurnStart,
)
from orchestrator.verdict.check import Check, CheckInfo, Setting

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.verdict.check import Closing

_AUDIT: Final = "audit"
# What the next state may be made for, by what the one before it was released for.
_NEXT: Final = {
    "trim": frozenset({"trim"}),
    "evict": frozenset({"resume", "conversation"}),
    "background": frozenset({"resume", "conversation"}),
    "reload": frozenset({"reload"}),
    "end": frozenset({"conversation"}),
}
_MOST_RELOADS_A_TURN: Final = 1


class StateLifecycle(Check):
    """A state lives for a conversation, and only a recorded event ends it earlier."""

    info = CheckInfo(
        id="state.lifecycle",
        title="One state per conversation, the old one released first",
        meaning=(
            "Each state is made for the conversation's first prediction, after a trim, an eviction"
            " or a reload, and only once the one before it was released; each release has its"
            " trim, its eviction, its reload or the end of its conversation; none outlives the"
            " soak."
        ),
        causes=(
            "a state is made for every token or every turn",
            "the new state is made before the old one is released",
            "the state is dropped by a cache nobody asked",
        ),
        what_to_do=("follow the ids of the `state` records: made, used, released, in this order",),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._made = 0
        self._begin()

    def _begin(self) -> None:
        self._live: State | None = None
        self._audit: State | None = None
        self._allowed = _NEXT["end"]
        self._cut: Trim | Evict | None = None  # announced, and its state not released yet
        self._in_turn = False
        self._reloads = 0  # in this turn
        self._conversation = 0
        self._ended: int | None = None  # the conversation whose state was released at its end

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        match record:
            case Hello():
                self._begin()
            case State() if record.purpose == _AUDIT:
                self._on_audit(record)
            case State(action="made"):
                self._on_made(record)
            case State(action="released"):
                self._on_released(record)
            case Trim() | Evict():
                self._cut = record
            case TurnStart():
                self._on_turn(record)
            case TurnEnd():
                self._in_turn = False
            case Bye() if self._live is not None or self._audit is not None:
                self.faults.add(record, "the soak is over and a state is still live")
            case _:
                pass

    def _on_audit(self, record: State) -> None:
        if record.action == "released":
            self._audit = None
            return
        if self._audit is not None:
            self.faults.add(record, "a second state for audits was made")
        self._audit = record

    def _on_made(self, record: State) -> None:
        self._made += 1
        if self._live is not None:
            text = f"state {record.id} was made before state {self._live.id} was released"
            self.faults.add(record, text)
        elif record.purpose not in self._allowed:
            due = " or ".join(sorted(self._allowed))
            self.faults.add(record, f"a state was made for {record.purpose}; due was {due}")
        self._live = record

    def _on_released(self, record: State) -> None:
        reason = self._unfounded(record)
        if reason is not None:
            self.faults.add(record, f"state {record.id} was released {reason}")
        self._allowed = _NEXT.get(record.purpose, _NEXT["end"])
        if isinstance(self._cut, Trim) and self._cut.kept == 0:
            self._allowed = self._allowed | _NEXT["end"]  # the prompt itself comes next
        self._cut = None
        if self._live is not None and self._live.id == record.id:
            self._live = None

    def _unfounded(self, record: State) -> str | None:
        """Return what is wrong with a release, None for one that an event explains."""
        cut = self._cut
        match record.purpose:
            case "trim":
                founded = isinstance(cut, Trim)
            case "evict":
                founded = isinstance(cut, Evict) and cut.reason != "background"
            case "background":
                founded = isinstance(cut, Evict) and cut.reason == "background"
            case "end":
                self._ended = self._conversation
                return "within a turn" if self._in_turn else None
            case "reload":
                self._reloads += 1
                many = self._reloads > _MOST_RELOADS_A_TURN
                return f"for reload number {self._reloads} of one turn" if many else None
            case _:
                return f"for {record.purpose}, which ends no state"
        return None if founded else f"for a {record.purpose} that no record announced"

    def _on_turn(self, record: TurnStart) -> None:
        self._in_turn, self._reloads = True, 0
        if record.conversation == self._ended:
            self.faults.add(record, f"conversation {record.conversation} goes on after its state")
        if record.conversation != self._conversation:
            self._allowed = self._allowed | _NEXT["end"]
        self._conversation, self._ended = record.conversation, None

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the number of states made."""
        if self.faults.count:
            return self.failed(self.faults.count, "states made or released wrongly", 0)
        if not self._made:
            return self.unmeasured("no state was made")
        return self.passed(self._made, "states")
