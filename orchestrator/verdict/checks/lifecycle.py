"""Checks of when states are made and released: for a reason each, and never two at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.runlog.telemetry import (
    AnyRecord,
    Bye,
    Evict,
    Hello,
    Lifecycle,
    Prefill,
    State,
    Tokens,
    Trim,
    TurnEnd,
    TurnStart,
)
from orchestrator.verdict.check import Check, CheckInfo, Limit, Setting
from orchestrator.verdict.tally import NS_PER_S

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


class BackgroundReleases(Check):
    """Leaving the foreground releases the state, and nothing is predicted until the return."""

    info = CheckInfo(
        id="background.releases",
        title="The state goes when the app leaves the foreground",
        meaning=(
            "After the app went to the background a live state is released within the limit, and at"
            " most the prediction in flight and one more that was starting run until it is back:"
            " a large app in the background is the first that iOS kills."
        ),
        causes=(
            "nobody observes the change of the scene's phase",
            "the release waits for the end of the turn",
            "a second reference keeps the state alive",
        ),
        limits=(
            Limit("release_limit_s", 1.0, "s", "from the event to the state's release"),
            Limit("max_predictions", 1.0, "predictions", "that may start after the event"),
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._limit_s = self.limit("release_limit_s")
        self._most_starts = self.limit("max_predictions")
        self._live = False
        self._left: Lifecycle | None = None  # since when the app is away
        self._owing = False  # a live state was there and is not released yet
        self._starts = 0
        self._last_start_ns = -1
        self._slowest_s: float | None = None

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        self._judge_wait(record)
        match record:
            case Lifecycle(event="background"):
                self._left, self._owing, self._starts = record, self._live, 0
            case Lifecycle():
                self._left, self._owing = None, False
            case State() if record.purpose != _AUDIT:
                self._on_state(record)
            case Prefill() if record.purpose != _AUDIT:
                self._on_start(record, record.start_ns)
            case Tokens():
                for start_ns in record.start_ns:
                    self._on_start(record, start_ns)
            case Hello():
                self._live, self._left, self._owing, self._last_start_ns = False, None, False, -1
            case _:
                pass

    def _on_state(self, record: State) -> None:
        self._live = record.action == "made"
        if record.action == "released" and self._owing and self._left is not None:
            took_s = (record.t_ns - self._left.t_ns) / NS_PER_S
            self._slowest_s = max(took_s, self._slowest_s or 0.0)
            self._owing = False

    def _judge_wait(self, record: AnyRecord) -> None:
        if self._left is None or not self._owing:
            return
        waited_s = (record.t_ns - self._left.t_ns) / NS_PER_S
        released = isinstance(record, State) and record.action == "released"
        if waited_s > self._limit_s:
            verb = "released" if released else "still live"
            self.faults.add(self._left, f"{waited_s:.2f} s after it the state was {verb}", waited_s)
            self._owing = False

    def _on_start(self, record: Prefill | Tokens, start_ns: int) -> None:
        if start_ns <= self._last_start_ns:
            return  # the first sample of a turn repeats the times of the prompt's last chunk
        self._last_start_ns = start_ns
        if self._left is None or start_ns <= self._left.t_ns:
            return
        self._starts += 1
        if self._starts == self._most_starts + 1:
            self.faults.add(record, "predictions go on while the app is in the background")

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the longest time to a release."""
        if self.faults.count:
            return self.failed(self.faults.value, "s", self._limit_s)
        if self._slowest_s is None:
            return self.unmeasured("the app never left the foreground with a live state")
        return self.passed(round(self._slowest_s, 4), "s", self._limit_s)
