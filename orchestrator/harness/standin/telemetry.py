"""Writes the records of a launch (docs/protocol.md, 3). Thread-safe."""

from __future__ import annotations

import hashlib
import struct
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.harness.standin.clock import NS_PER_S
from orchestrator.harness.standin.journal import HASH_DIGITS

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.harness.standin.clock import LaunchClock
    from orchestrator.harness.standin.context import Admission, Trim
    from orchestrator.harness.standin.journal import Journal
    from orchestrator.harness.standin.memory import MemoryGauge
    from orchestrator.harness.standin.ports import Chunk, Phase, Sample, Turn
    from orchestrator.harness.standin.pressure import Interruption
    from orchestrator.harness.standin.text import Shown, TextView

NOTICE_TEXT: Final = "Memory limit reached \N{EN DASH} context was trimmed."
WARNING_CHANNEL: Final = "host"
_MOST_SAMPLES: Final = 8
_MOST_HAND_NS: Final = NS_PER_S // 4


@dataclass(slots=True)
class Totals:
    """Counts of a launch."""

    tokens: int = 0
    turns: int = 0
    trims: int = 0
    evictions: int = 0
    warnings: int = 0


class TurnView:
    """The consumer of a turn's stream: what a person would have seen."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.consumed = 0

    def show(self, token: int) -> None:
        """Take one token of the stream."""
        self.consumed += 1
        self._hash.update(struct.pack("<i", token))

    @property
    def text_hash(self) -> str:
        """SHA-256 over the ids as little-endian int32, 16 hex digits."""
        return self._hash.hexdigest()[:HASH_DIGITS]


class Telemetry:
    """The records of one launch, in the order of events.

    Samples are held in hand until there are 8, 250 ms have passed, or another record is written.
    """

    def __init__(
        self,
        journal: Journal,
        gauge: MemoryGauge,
        clock: LaunchClock,
        *,
        state_bytes: int,
        new_text: Callable[[], TextView],
    ) -> None:
        """Write to a journal.

        Args:
            journal: Where records go.
            gauge: Footprint of the app.
            clock: Time of the launch.
            state_bytes: Phone bytes of one state.
            new_text: Makes the view of a turn's text.
        """
        self._journal, self._gauge, self._clock = journal, gauge, clock
        self._state_bytes = state_bytes
        self._new_text, self._text = new_text, new_text()
        self._shown: list[Shown] = []  # of the samples in hand
        self._lock = threading.RLock()
        self._hand: list[Sample] = []
        self._hand_since_ns = 0
        self._where: dict[str, object] = {}  # conversation and turn
        self._closed = False
        self.totals = Totals()
        self.kv_bytes = 0  # phone bytes of live states
        self.first_prediction_ns: int | None = None

    def record(self, kind: str, **fields: object) -> int:
        """Write a record after the tokens in hand and return its `seq`; after `bye` nothing is."""
        with self._lock:
            self._flush()
            if self._closed:
                return self._journal.seq
            self._closed = kind == "bye"
            return self._journal.append(kind, fields)

    def _flush(self) -> None:
        if not self._hand or self._closed:
            return
        hand, self._hand = self._hand, []
        shown, self._shown = self._shown, []
        fields = {
            **self._where,
            "ids": [sample.token for sample in hand],
            "n": [sample.rows for sample in hand],
            "state": hand[0].state,
            "start_ns": [sample.span_ns[0] for sample in hand],
            "end_ns": [sample.span_ns[1] for sample in hand],
            "text_bytes": sum(each.byte_count for each in shown),
            "text": "".join(each.text for each in shown),
        }
        self._journal.append("tokens", fields)

    def _memory(self) -> dict[str, object]:
        reading = self._gauge.read()
        return {"footprint": reading.footprint, "host_bytes": reading.host_bytes}

    def breadcrumb(self, about: str, detail: str) -> None:
        """Say what is about to happen."""
        self.record("breadcrumb", about=about, detail=detail)

    def turn_started(self, turn: Turn, admission: Admission) -> None:
        """Write `turn_start`."""
        with self._lock:
            self._flush()
            self._where = {"conversation": turn.conversation, "turn": turn.number}
            self._text = self._new_text()
            self.record(
                "turn_start",
                **self._where,
                prompt_ids=turn.prompt,
                used_ids=admission.used,
                carried=admission.carried,
                limit=turn.limit,
                sampling="greedy",
            )

    def turn_ended(self, reason: str, generated: int, view: TurnView) -> None:
        """Write `turn_end`."""
        self.totals.turns += 1
        self.record(
            "turn_end",
            **self._where,
            reason=reason,
            generated=generated,
            consumed=view.consumed,
            text_hash=view.text_hash,
            held_bytes=self._text.held_bytes,
        )

    def prefilled(self, chunk: Chunk) -> None:
        """Write `prefill`."""
        if self.first_prediction_ns is None:
            self.first_prediction_ns = chunk.span_ns[0]
        self.record(
            "prefill",
            **self._where,
            purpose=chunk.purpose,
            start=chunk.start,
            ids=chunk.ids,
            pad=0,
            state=chunk.state,
            start_ns=chunk.span_ns[0],
            end_ns=chunk.span_ns[1],
        )

    def sampled(self, sample: Sample) -> None:
        """Take a sample in hand; write `tokens` where there are enough."""
        with self._lock:
            now_ns = self._clock.now_ns()
            if not self._hand:
                self._hand_since_ns = now_ns
            self._hand.append(sample)
            self._shown.append(self._text.show(sample.token))
            self.totals.tokens += 1
            held_ns = now_ns - self._hand_since_ns
            if len(self._hand) >= _MOST_SAMPLES or held_ns >= _MOST_HAND_NS:
                self._flush()

    def trimming(self, trim: Trim, count: int, reason: str, phase: Phase, state: int) -> int:
        """Write `trim` and its breadcrumb; return its `seq`."""
        self.totals.trims += 1
        self.breadcrumb("trim", f"{trim.before} rows to {len(trim.kept)}")
        return self.record(
            "trim",
            **self._where,
            before=trim.before,
            kept=len(trim.kept),
            pinned=trim.pinned,
            k=count,
            reason=reason,
            phase=phase,
            state=state,
            **self._memory(),
        )

    def about_to_evict(self, rows: int) -> None:
        """Write the breadcrumb of an eviction."""
        self.breadcrumb("evict", f"{rows} rows")

    def evicting(self, interruption: Interruption, rows: int, phase: Phase, state: int) -> int:
        """Write `evict` and return its `seq`."""
        self.totals.evictions += 1
        return self.record(
            "evict",
            **self._where,
            before=rows,
            kept=0,
            pinned=0,
            k=0,
            reason=interruption.reason,
            warnings=interruption.warnings,
            phase=phase,
            state=state,
            **self._memory(),
        )

    def state(self, action: str, number: int, purpose: str) -> None:
        """Write `state`."""
        self.kv_bytes = self._state_bytes if action == "made" else 0
        self.record(
            "state",
            action=action,
            id=number,
            purpose=purpose,
            bytes=self._state_bytes,
            **self._memory(),
        )

    def notice(self, for_seq: int) -> None:
        """Write `notice`: this app's view is its log, so it is shown by being written."""
        self.record("notice", for_seq=for_seq, shown=True, text=NOTICE_TEXT)

    def fault(self, code: str, message: str, phase: Phase) -> None:
        """Write `fault`."""
        self.record("fault", code=code, message=message, phase=phase)

    def memory_warning(self, origin: str) -> int:
        """Write `memory_warning` and return its `n`."""
        with self._lock:
            self.totals.warnings += 1
            self.record(
                "memory_warning",
                n=self.totals.warnings,
                origin=origin,
                channel=WARNING_CHANNEL,
                **self._memory(),
            )
            return self.totals.warnings

    def heartbeat(self, suspended_s: float) -> None:
        """Write `heartbeat`."""
        self.record("heartbeat", wall_time_s=time.time(), suspended_s=suspended_s)

    def bye(self, reason: str) -> None:
        """Write the last record."""
        totals, first_ns = self.totals, self.first_prediction_ns
        inference_ns = 0 if first_ns is None else self._clock.now_ns() - first_ns
        self.record(
            "bye",
            reason=reason,
            tokens_total=totals.tokens,
            turns=totals.turns,
            trims=totals.trims,
            evictions=totals.evictions,
            warnings=totals.warnings,
            inference_s=inference_ns / NS_PER_S,
        )
