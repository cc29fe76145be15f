"""The pipeline: plays turns on one conversation's state, rule by rule (contract, R1 to R13).

It decides when to feed, sample, trim, evict and resume; the engine computes and the log writes.
Owned by one thread, so predictions on a state never overlap; other threads interrupt it through
`Pressure`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from orchestrator.harness.standin.ports import (
    Attendant,
    Chunk,
    Engine,
    Phase,
    PredictionError,
    Sample,
    Turn,
    TurnLog,
    TurnRules,
)
from orchestrator.harness.standin.pressure import Interruption, Pressure

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.harness.standin.context import Admission, ContextWindow


class _TurnOverError(Exception):
    """Unwinds a turn; carries the reason it ended with."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Pipeline:
    """Plays the turns of a launch, one after the other."""

    def __init__(
        self,
        new_window: Callable[[], ContextWindow],
        rules: TurnRules,
        engine: Engine,
        log: TurnLog,
        attendant: Attendant,
        pressure: Pressure,
    ) -> None:
        """Begin with an empty conversation and no state.

        Args:
            new_window: Makes the window of a conversation.
            rules: What holds for every turn.
            engine: Computes.
            log: Writes.
            attendant: Acts between two steps.
            pressure: What interrupts.
        """
        self._new_window, self._window = new_window, new_window()
        self._rules, self._engine, self._log = rules, engine, log
        self._attendant, self._pressure = attendant, pressure
        self._states_made = 0
        self._state_alive = False
        self._next_purpose = "conversation"  # of the next state that is made
        self._evictions_since_sample = 0
        self._low_memory_answered = False
        self._generated = 0
        self._span_ns = (0, 0)
        self.phase = Phase.IDLE

    @property
    def row_count(self) -> int:
        """Rows of the context."""
        return len(self._window.rows)

    @property
    def generated(self) -> int:
        """Samples of the turn that is played or was played last."""
        return self._generated

    def turn(self, turn: Turn) -> str:
        """Play a turn and return the reason it ended with."""
        self.settle()
        self._generated = self._evictions_since_sample = 0
        admission = self._window.admit(turn.prompt)
        self._log.turn_started(turn, admission)
        if not admission.used:
            return "refused"
        self._window.begin_turn(admission)
        self.phase = Phase.PREFILL
        try:
            self._play(admission, turn.limit)
        except _TurnOverError as over:
            return over.reason
        except PredictionError as error:
            self._fail(error)
            return "fault"
        finally:
            self.phase = Phase.IDLE

    def settle(self) -> None:
        """Answer between two turns what interrupts (R7: with no prediction in flight, at once)."""
        if self._pressure.interrupts:
            self._evict()

    def end_conversation(self) -> None:
        """Release the state and begin an empty conversation."""
        with self._pressure.lock:
            self.settle()
            self._release("end")
        self._window = self._new_window()
        self._next_purpose = "conversation"

    def reload(self) -> None:
        """Remake the state with the same rows, as after the model was loaded again (R9)."""
        rows = list(self._window.rows)
        self._release("reload")
        self._next_purpose = "reload"
        if self._feed(rows, "reload"):
            self._evict()

    def _play(self, admission: Admission, limit: int | None) -> Never:
        self._ingest(admission)
        while True:
            token = self._sample(limit)
            self.phase = Phase.DECODE
            self._make_room(1)
            self._resume()
            self._predict([token], "decode")
            self._window.accept(token)

    def _ingest(self, admission: Admission) -> None:
        """Prefill the turn's ids, again from their start after an eviction (R3, R8)."""
        self._make_room(len(admission.used))
        while self._feed(self._window.ingest_ids(admission), "turn"):
            self._evict_within_turn()

    def _resume(self) -> None:
        """Prefill pin and tail where the state was lost in decode (R8)."""
        while not self._window.rows and self._feed(self._window.resume_ids(), "resume"):
            self._evict_within_turn()

    def _sample(self, limit: int | None) -> int:
        """Sample, answer what landed, then ask whether the turn is over (R2, R7)."""
        token = self._engine.sample()
        self._generated += 1
        self._evictions_since_sample = 0
        self._log.sampled(Sample(token, self.row_count, self._states_made, self._span_ns))
        self._attendant.after_sample(token)
        if self._pressure.interrupts:
            self._evict_within_turn()
        reason = self._end_reason(token, limit)
        if reason is not None:
            self._window.keep_pending(token)
            raise _TurnOverError(reason)
        return token

    def _end_reason(self, token: int, limit: int | None) -> str | None:
        if token in self._rules.end_ids:
            return "end_token"
        if self._generated == limit:
            return "turn_limit"
        return "cancelled" if self._pressure.stop_reason else None

    def _feed(self, ids: list[int], purpose: str) -> bool:
        """Prefill ids in chunks and return whether that was interrupted.

        The last chunk of a turn's ids is not looked at here: its sample is used first (R7).
        """
        for start in range(0, len(ids), self._rules.chunk):
            if purpose == "turn" and self._pressure.stop_reason:
                raise _TurnOverError("cancelled")
            self._predict(ids[start : start + self._rules.chunk], purpose)
            sampled_next = purpose == "turn" and start + self._rules.chunk >= len(ids)
            if self._pressure.interrupts and not sampled_next:
                return True
        return False

    def _predict(self, ids: list[int], purpose: str) -> None:
        if not self._state_alive:
            self._make()
        start = self.row_count
        self._span_ns = self._engine.predict(ids, purpose)
        self._window.fed(ids)
        if purpose != "decode":
            self._log.prefilled(Chunk(purpose, start, ids, self._states_made, self._span_ns))

    def _make_room(self, count: int) -> None:
        """Trim where `count` more rows would pass the budget, or memory is low (R5, R13)."""
        if self._window.overflows(count):
            self._trim(count, "budget")
        elif self._low_memory_due(count):
            self._low_memory_answered = True
            self._trim(count, "low_memory")

    def _low_memory_due(self, count: int) -> bool:
        if not self._attendant.memory_is_low():
            self._low_memory_answered = False
            return False
        return not self._low_memory_answered and self._window.can_shrink(count)

    def _trim(self, count: int, reason: str) -> None:
        trim = self._window.plan_trim(count)
        seq = self._log.trimming(trim, count, reason, self.phase, self._states_made)
        self._release("trim")
        self._next_purpose = "trim"
        try:
            interrupted = self._feed(trim.kept, "trim")
        finally:
            self._log.notice(seq)
        if interrupted:
            self._evict_within_turn()

    def _evict_within_turn(self) -> None:
        """Evict; the turn is over where nothing was sampled since the eviction before (R8)."""
        self._evict()
        self._evictions_since_sample += 1
        if self._evictions_since_sample > 1:
            raise _TurnOverError("memory_pressure")

    def _evict(self, reason: str | None = None) -> None:
        self._log.about_to_evict(self.row_count)
        with self._pressure.lock:
            taken = self._pressure.take()
            interruption = Interruption(reason or taken.reason, taken.warnings)
            seq = self._log.evicting(interruption, self.row_count, self.phase, self._states_made)
            self._release("background" if interruption.reason == "background" else "evict")
        self._next_purpose = "resume"
        self._log.notice(seq)
        self._attendant.after_eviction()

    def _fail(self, error: PredictionError) -> None:
        """Release an undefined state; the next turn starts as after an eviction (R9)."""
        self._log.fault(error.code, str(error), self.phase)
        if self.row_count:
            self._evict("fault")
        else:
            self._release("evict")
            self._next_purpose = "resume"

    def _make(self) -> None:
        """Make a state, in the foreground only (R12)."""
        if not self._pressure.wait_for_foreground():
            raise _TurnOverError("cancelled")
        with self._pressure.lock:
            self._engine.make_state(self._next_purpose)
            self._states_made += 1
            self._state_alive = True
            self._pressure.state_made()
            self._log.state("made", self._states_made, self._next_purpose)

    def _release(self, purpose: str) -> None:
        with self._pressure.lock:
            self._window.clear()
            if not self._state_alive:
                return
            self._engine.release_state(purpose)
            self._state_alive = False
            self._pressure.state_released()
            self._log.state("released", self._states_made, purpose)
