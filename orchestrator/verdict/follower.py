"""Follows the records of one launch through the contract (see `expectation`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.runlog.telemetry import (
    AnyRecord,
    Evict,
    Prefill,
    Record,
    State,
    Tokens,
    Trim,
    TurnEnd,
    TurnStart,
)
from orchestrator.verdict.comparison import (
    ending_difference,
    evict_difference,
    kept_difference,
    opening_difference,
    totals_difference,
    trim_difference,
    unsampled_difference,
)
from orchestrator.verdict.deviation import Deviation, DeviationKind
from orchestrator.verdict.progress import Feed, Turn
from orchestrator.verdict.window import ContextWindow, TrimPlan

if TYPE_CHECKING:
    from orchestrator.verdict.comparison import Difference
    from orchestrator.verdict.rules import LaunchRules

_MAX_DEVIATIONS: Final = 16  # of one record: a hostile one may hold thousands
_PENDING_LOST: Final = frozenset({"memory_pressure", "fault"})
_MADE_AT_ANY_TIME: Final = frozenset({"audit", "reload"})  # R9
_BLAME: Final = {"trim": DeviationKind.TRIM_KEPT, "resume": DeviationKind.RESUME}


class Follower:
    """The contract's prediction for one launch.

    Attributes:
        window: The predicted context.
        deviations: Differences found so far; the owner takes and clears them.
        witnessed: Samples whose token was recomputed; the owner takes and clears it.
        disproved: How many of those are another token than the predicted context gives.
    """

    def __init__(self, rules: LaunchRules) -> None:
        self._rules = rules
        self.window = ContextWindow(rules.budget, rules.pin)
        self.deviations: list[Deviation] = []
        self.witnessed = 0
        self.disproved = 0
        self._turn: Turn | None = None
        self._feeds: list[Feed] = []  # the last is fed first
        self._conversation = 0
        self._number = 0  # of the turn within its conversation

    @property
    def proves_context(self) -> bool:
        """Whether the engine's tokens prove their context."""
        return self._rules.witness is not None

    def observe(self, record: AnyRecord) -> None:
        """Take the next record of the launch."""
        match record:
            case Tokens():
                self._on_tokens(record)
            case Prefill():
                self._on_prefill(record)
            case TurnStart():
                self._on_turn_start(record)
            case TurnEnd():
                self._on_turn_end(record)
            case Trim():
                self._on_trim(record)
            case Evict():
                self._on_evict(record)
            case State(action="released", purpose="end"):
                self._on_conversation_end(record)
            case State(action="made") if record.purpose not in _MADE_AT_ANY_TIME:
                self._on_state_made(record)
            case _:
                pass

    def _report(self, record: Record, difference: Difference | None) -> None:
        if difference is not None:
            self._deviate(difference[0], record, difference[1])

    def _deviate(self, kind: DeviationKind, record: Record, text: str) -> None:
        if len(self.deviations) < _MAX_DEVIATIONS:
            self.deviations.append(Deviation(kind, text, record.launch, record.seq))

    # Turns: order, prompts, refusals, ends

    def _on_turn_start(self, record: TurnStart) -> None:
        if self._turn is not None:
            self._deviate(DeviationKind.TURN, record, "a turn began before the last one ended")
        self._follow_numbers(record)
        if record.prompt_ids != self._rules.scheduled_prompt(record.conversation, record.turn):
            self._deviate(DeviationKind.PROMPT, record, "the prompt is not the scheduled one")
        if record.limit != self._rules.scenario.prompts.turn_limit:
            self._deviate(DeviationKind.TURN, record, f"the turn's limit is {record.limit}")
        truncate = self._rules.scenario.policy.long_prompt == "truncate"
        opening = self.window.opening(record.prompt_ids, truncate=truncate)
        self._report(record, opening_difference(record, opening))
        self._turn = Turn(record.conversation, record.turn, len(record.used_ids), record.limit)
        self._feeds = []
        if not record.used_ids:
            self._turn.ending = "refused"
            return
        lost = self._number > 1 and not self.window.rows
        self.window.open(list(record.used_ids))
        blame = DeviationKind.RESUME if lost else DeviationKind.PREFILL
        self._feeds = [Feed("turn", self.window.ingest_ids(), blame)]

    def _follow_numbers(self, record: TurnStart) -> None:
        expected = self._rules.next_turn(self._conversation, self._number)
        claimed = (record.conversation, record.turn)
        if claimed != expected:
            self._deviate(
                DeviationKind.TURN, record, f"turn {claimed} began where {expected} was due"
            )
        if record.conversation != self._conversation:
            self.window.start_conversation()
        self._conversation, self._number = claimed

    def _on_turn_end(self, record: TurnEnd) -> None:
        turn, self._turn, self._feeds = self._turn, None, []
        if turn is None or (record.conversation, record.turn) != (turn.conversation, turn.number):
            self._deviate(DeviationKind.TURN, record, "a turn ended that was not running")
            return
        self._report(record, ending_difference(record, turn))
        self._report(record, totals_difference(record, turn))
        if record.reason == "refused":
            return  # nothing changes: what is pending stays (R4)
        lost = record.reason in _PENDING_LOST
        self.window.pending = [] if lost or turn.sampled is None else [turn.sampled]

    def _on_conversation_end(self, record: State) -> None:
        if self._turn is not None:
            self._deviate(DeviationKind.TURN, record, "the state was released within a turn")
        self.window.start_conversation()

    def _on_state_made(self, record: State) -> None:
        if self._turn is None:
            self._deviate(
                DeviationKind.TURN, record, "a state was made before a prediction needed it (R7)"
            )

    # Predictions: chunks and samples

    def _on_prefill(self, record: Prefill) -> None:
        if record.purpose == "audit":
            return  # a state of its own; the context is untouched (R9)
        if record.purpose == "reload":
            self._begin_reload()
        else:
            turn = self._turn_of(record)
            self._miss_trim(turn, record)
        self._follow_rows(record, record.start)
        self._judge_chunk(record)
        self.window.feed(record.ids)
        self.window.bound()

    def _turn_of(self, record: Prefill | Tokens) -> Turn:
        """Return the record's turn; one that nobody began is made up, to be blamed once."""
        claimed = (record.conversation, record.turn)
        if self._turn is None or claimed != (self._turn.conversation, self._turn.number):
            self._deviate(DeviationKind.TURN, record, f"a prediction names turn {claimed}")
        if self._turn is None:
            self._turn = Turn(*claimed, 0, None)
        return self._turn

    def _begin_reload(self) -> None:
        if not self._feeds or self._feeds[-1].purpose != "reload":
            ids = list(self.window.rows)
            self._feeds.append(Feed("reload", ids, DeviationKind.PREFILL))
            self.window.release()

    def _follow_rows(self, record: Record, claimed: int) -> None:
        if claimed != self.window.row_count:
            self._deviate(
                DeviationKind.ROWS,
                record,
                f"the phone counts {claimed} rows, predicted are {self.window.row_count}",
            )
            self.window.surplus = claimed - len(self.window.rows)

    def _judge_chunk(self, record: Prefill) -> None:
        self._skip_abandoned_feed(record)
        feed = self._feeds[-1] if self._feeds else None
        if feed is None:
            blame = _BLAME.get(record.purpose, DeviationKind.PREFILL)
            self._deviate(blame, record, f"a {record.purpose} chunk was fed where none was due")
            return
        expected = feed.next_chunk(self._rules.chunk)
        if record.purpose != feed.purpose or record.ids != expected:
            blame = _BLAME.get(record.purpose, feed.blame)
            self._blame(feed, blame, record, "was fed with other ids or for another purpose")
        if record.purpose == feed.purpose:
            feed.done += len(record.ids)
        while self._feeds and self._feeds[-1].complete:
            self._feeds.pop()

    def _skip_abandoned_feed(self, record: Prefill) -> None:
        """Go on with the feed below where the phone left the upper one unfinished."""
        purposes = [feed.purpose for feed in self._feeds[-2:]]
        if record.purpose in purposes[:-1] and record.purpose != purposes[-1]:
            feed = self._feeds.pop()
            self._blame(feed, feed.blame, record, "was left unfinished")

    def _blame(self, feed: Feed, kind: DeviationKind, record: Record, what: str) -> None:
        if not feed.blamed:
            left = len(feed.ids) - feed.done
            self._deviate(kind, record, f"the {feed.purpose} prefill {what}; {left} ids were left")
            feed.blamed = True

    def _on_tokens(self, record: Tokens) -> None:
        turn = self._turn_of(record)
        if not len(record.ids) == len(record.n) == len(record.start_ns) == len(record.end_ns):
            self._deviate(DeviationKind.TURN, record, "a tokens record has lists of unequal length")
        for feed in self._feeds:
            self._blame(feed, feed.blame, record, "was not finished before a sample")
        self._feeds = []
        for token, claimed in zip(record.ids, record.n, strict=False):
            if turn.sampled is not None:
                self._decode(turn, turn.sampled, record)
            self._follow_rows(record, claimed)
            self._prove(token)
            self._sample(turn, token)
        self.window.bound()

    def _decode(self, turn: Turn, token: int, record: Tokens) -> None:
        """Feed the token that was sampled before: that is what the next sample comes from (R1)."""
        if turn.ending is not None:
            self._deviate(
                DeviationKind.TURN, record, f"a token was sampled after {turn.ending} (R2)"
            )
            turn.ending = None
        if self.window.overflows(1):
            self._miss_trim(turn, record)
        self.window.rows.append(token)
        self.window.accept(token)

    def _sample(self, turn: Turn, token: int) -> None:
        turn.sampled = token
        turn.generated += 1
        turn.evictions_since_sample = 0
        if token in self._rules.end_ids:
            turn.ending = "end_token"
        elif turn.generated == turn.limit:
            turn.ending = "turn_limit"

    def _prove(self, token: int) -> None:
        witness = self._rules.witness
        if witness is None:
            return
        self.witnessed += 1
        if not self.window.rows or witness.token(self.window.rows) != token:
            self.disproved += 1

    # Trims and evictions

    def _trim_due(self, turn: Turn | None) -> TrimPlan | None:
        """Return the trim that R3 and R5 call for before the next prediction."""
        if turn is None or turn.trim_excused or turn.ending is not None:
            return None
        if turn.sampled is not None:
            k = 0 if self._feeds else 1
        else:
            fresh = bool(self._feeds) and self._feeds[-1].purpose == "turn"
            k = turn.used_count if fresh and self._feeds[-1].done == 0 else 0
        return self.window.trim_plan(k) if k and self.window.overflows(k) else None

    def _miss_trim(self, turn: Turn, record: Record) -> None:
        due = self._trim_due(turn)
        if due is not None:
            self._deviate(
                DeviationKind.TRIM_MISSING,
                record,
                f"{due.before} rows and {due.k} more pass the budget of {self._rules.budget},"
                " and nothing was trimmed (R5)",
            )
            turn.trim_excused = True

    def _on_trim(self, record: Trim) -> None:
        turn = self._turn
        plan = self._trim_due(turn)
        if plan is None:
            plan = self._undue_trim(record, turn)
        else:
            low_memory = self._rules.scenario.policy.low_memory_trim
            self._report(record, trim_difference(record, plan, low_memory=low_memory))
        if turn is not None and record.phase not in turn.phases:
            self._deviate(DeviationKind.TRIM_COUNTS, record, f"a trim in phase {record.phase}")
        self._report(record, kept_difference(record, plan))
        kept_ids = self.window.kept_ids(record.kept, record.pinned)
        self._release(turn)
        if kept_ids:
            self._feeds.append(Feed("trim", kept_ids, DeviationKind.TRIM_KEPT))

    def _undue_trim(self, record: Trim, turn: Turn | None) -> TrimPlan:
        """Take a trim for low memory as an input where R13 is on; blame any other."""
        plan = self.window.trim_plan(record.k)
        low_memory = self._rules.scenario.policy.low_memory_trim and record.reason == "low_memory"
        if not low_memory or turn is None or record.before != plan.before:
            self._deviate(
                DeviationKind.TRIM_UNEXPECTED,
                record,
                f"a trim for {record.reason} at {record.before} rows with {record.k} more, where"
                f" {plan.before} rows and a budget of {self._rules.budget} call for none",
            )
        return plan

    def _on_evict(self, record: Evict) -> None:
        turn = self._turn
        self._report(record, evict_difference(record, turn, self.window.row_count))
        if not self._feeds:
            self._report(record, unsampled_difference(record, turn))
        self._release(turn)
        self._feeds = []
        if turn is None:
            return
        turn.evictions_since_sample += 1
        if record.reason == "fault":
            turn.ending = "fault"
        elif turn.ending is None and turn.evictions_since_sample > 1:
            turn.ending = "memory_pressure"
        elif turn.ending is None and turn.sampled is None:
            self._feeds = [Feed("turn", self.window.ingest_ids(), DeviationKind.RESUME)]
        elif turn.ending is None:
            ids = self.window.resume_ids()
            self._feeds = [Feed("resume", ids, DeviationKind.RESUME)] if ids else []

    def _release(self, turn: Turn | None) -> None:
        self.window.release()
        if turn is not None:
            turn.trim_excused = False
