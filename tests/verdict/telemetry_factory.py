"""A tiny honest app: it keeps the pipeline contract by plain lists and writes a launch's records.

It shares no code with the verdict but the public mixing functions, so that the two can disagree.
Its methods are small on purpose: a test breaks one rule by overriding one method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.domain.mixing import mix, prompt_ids
from tests.verdict.telemetry_recorder import DECODER, Recorder
from tests.verdict.telemetry_spec import (
    BOS_ID,
    END_ID,
    FIRST_ID,
    LOAD_FIELDS,
    LOADED_BYTES,
    NONCE,
    STATE_BYTES,
    STEP_NS,
    VOCAB,
    Row,
    hash_of,
    hello_fields,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class App(Recorder):
    """One launch from `hello` to `bye`."""

    # Life of the launch

    def run(self) -> list[Row]:
        self.begin()
        while self.tokens_total < self.spec.stop_after:
            self.play_turn()
        self.end()
        return self.records

    def begin(self) -> None:
        self.write("hello", **hello_fields(self.spec), **self.memory())
        self.write("breadcrumb", about="load", detail="model")
        self.footprint = LOADED_BYTES
        self.write("load", **LOAD_FIELDS, **self.memory())
        self.write("handler", channel="host", registered=True)

    def end(self) -> None:
        self.flush()
        if self.state is not None:
            self.drop("end")
        self.write(
            "bye",
            reason="completed",
            tokens_total=self.tokens_total,
            turns=self.counts["turns"],
            trims=self.counts["trim"],
            evictions=self.counts["evict"],
            warnings=self.warnings,
            inference_s=1.0,
        )

    def play_turn(self) -> None:
        self.next_turn()
        prompt = self.prompt()
        used, carried = self.opening(prompt)
        self.write(
            "turn_start",
            **self.place(),
            prompt_ids=prompt,
            used_ids=used,
            carried=carried,
            limit=self.spec.turn_limit,
            sampling="greedy",
        )
        self.dry, self.generated, self.phase = 0, 0, "prefill"
        self.consumed, self.view, self.text_place = [], DECODER(errors="replace"), 0
        if not used:
            self.finish_turn("refused")
            return
        self.lead, self.turn_start = self.accepted[: self.spec.pin], len(self.accepted)
        self.accepted = self.accepted + used
        self.pending = []
        self.finish_turn(self.generate() if self.ingest(used) else "memory_pressure")

    def next_turn(self) -> None:
        if self.conversation and self.turn < self.spec.turns_per_conversation:
            self.turn += 1
            return
        if self.state is not None:
            self.drop("end")
        self.conversation, self.turn = self.conversation + 1, 1
        self.context, self.accepted, self.pending = [], [], []

    def prompt(self) -> list[int]:
        return prompt_ids(
            self.spec.seed,
            self.conversation,
            self.turn,
            length_range=(self.spec.min_ids, self.spec.max_ids),
            id_range=(FIRST_ID, VOCAB),
            bos_id=BOS_ID,
        )

    def opening(self, prompt: list[int]) -> tuple[list[int], int]:
        carried = [] if self.accepted and not self.context else self.pending
        wanted = carried + prompt
        room = self.spec.budget - (self.spec.pin if self.accepted else 0)
        if len(wanted) <= room:
            return wanted, len(carried)
        return self.too_long(wanted, room)

    def too_long(self, wanted: list[int], room: int) -> tuple[list[int], int]:
        return [], 0

    def finish_turn(self, reason: str) -> None:
        self.flush()
        self.counts["turns"] += 1
        self.write(
            "turn_end",
            **self.place(),
            reason=reason,
            generated=self.generated,
            consumed=len(self.consumed),
            text_hash=hash_of(self.consumed),
            held_bytes=len(self.view.getstate()[0]),
        )
        self.phase = "idle"
        if self.counts["turns"] in self.spec.warn_after_turns:
            self.warn()
            if self.context:
                self.evict()
            self.waiting = []

    # The contract

    def ingest(self, used: list[int]) -> bool:
        if self.context and self.must_trim(len(used)):
            self.trim(len(used))
        while True:
            whole = self.lead + used if self.turn_start and not self.context else used
            if self.feed(whole, "turn"):
                return True
            if not self.answer():
                return False

    def generate(self) -> str:
        while True:
            token = self.sample()
            self.dry = 0
            self.act_on_token()
            self.answer()
            reason = self.ends(token)
            if reason:
                self.pending = [token]
                return reason
            self.phase = "decode"
            if not self.prepare():
                return "memory_pressure"
            self.predict([token], "decode")
            self.accepted.append(token)

    def act_on_token(self) -> None:
        if self.tokens_total in self.spec.audit_at_tokens and not self.waiting:
            self.audit()
        if self.tokens_total in self.spec.background_at_tokens and not self.waiting:
            self.leave()

    def audit(self) -> None:
        self.flush()
        used, self.states = self.states, self.states + 100
        self.footprint += STATE_BYTES
        self.write_state("made", "audit")
        for start in range(0, len(self.context), self.spec.chunk):
            self.span = (self.t_ns, self.t_ns + STEP_NS)
            self.t_ns += STEP_NS
            self.write_prefill("audit", start, self.context[start : start + self.spec.chunk])
        fields = self.parity_fields()
        self.write("parity", **self.place(), n=len(self.context), state=self.states, **fields)
        self.footprint -= STATE_BYTES
        self.write_state("released", "audit")
        self.states = used

    def parity_fields(self) -> Row:
        return {"max_abs": 0.0, "top1_equal": True, "top3_contained": True, "top5_overlap": 1.0}

    def leave(self) -> None:
        """Go to the background, give the state back, and return after two seconds."""
        self.flush()
        self.write("lifecycle", event="background", phase=self.phase, origin="scenario")
        self.evict("background")
        self.dry += 1
        self.t_ns += 2_000_000_000
        self.write("lifecycle", event="foreground", phase=self.phase, origin="scenario")

    def ends(self, token: int) -> str | None:
        if token == END_ID:
            return "end_token"
        if self.generated == self.spec.turn_limit:
            return "turn_limit"
        return "cancelled" if self.tokens_total >= self.spec.stop_after else None

    def prepare(self) -> bool:
        if self.context and self.must_trim(1):
            self.trim(1)
        while not self.context:
            self.feed(self.resume_ids(), "resume")
            if not self.waiting:
                return True
            if not self.answer():
                return False
        return True

    def must_trim(self, k: int) -> bool:
        return len(self.context) + k > self.spec.budget

    def keep_count(self, k: int) -> int:
        return min(len(self.context), self.half, self.spec.budget - k)

    def kept(self, keep: int) -> list[int]:
        pin = min(self.spec.pin, keep)
        if keep == len(self.context):
            return self.context
        return self.context[:pin] + self.context[len(self.context) - (keep - pin) :]

    def resume_ids(self) -> list[int]:
        head = self.accepted[: self.spec.pin]
        body = self.accepted[max(self.turn_start, self.spec.pin) :]
        return head + body[max(0, len(body) - (self.half - len(head))) :]

    def trim(self, k: int) -> None:
        self.flush()
        self.write("breadcrumb", about="trim", detail="budget")
        kept = self.kept(self.keep_count(k))
        cut = self.write_trim(kept, k)
        self.drop("trim")
        self.context = []
        self.feed(kept, "trim")
        self.notice(cut)
        self.answer()

    def write_trim(self, kept: list[int], k: int) -> Row:
        self.counts["trim"] += 1
        return self.write(
            "trim",
            **self.place(),
            before=len(self.context),
            kept=len(kept),
            pinned=min(self.spec.pin, len(kept)),
            k=k,
            reason="budget",
            phase=self.phase,
            state=self.states,
            **self.memory(),
        )

    def answer(self) -> bool:
        if self.waiting:
            self.evict()
            self.dry += 1
        return self.dry < 2

    def evict(self, reason: str = "memory_warning") -> None:
        self.flush()
        self.write("breadcrumb", about="evict", detail="warning")
        self.counts["evict"] += 1
        cut = self.write(
            "evict",
            **self.place(),
            before=len(self.context),
            kept=0,
            pinned=0,
            k=0,
            reason=reason,
            warnings=self.waiting,
            phase=self.phase,
            state=self.states,
            **self.memory(),
        )
        self.waiting = []
        self.drop("background" if reason == "background" else "evict")
        self.context = []
        self.notice(cut)

    def notice(self, cut: Row) -> None:
        text = "Memory limit reached \u2013 context was trimmed."
        self.write("notice", for_seq=cut["seq"], shown=True, text=text)

    def warn(self) -> None:
        self.warnings += 1
        self.waiting = [*self.waiting, self.warnings]
        origin = self.spec.origin
        self.write(
            "memory_warning", n=self.warnings, origin=origin, channel="host", **self.memory()
        )

    # The engine

    def feed(self, ids: Sequence[int], purpose: str) -> bool:
        for start in range(0, len(ids), self.spec.chunk):
            chunk = list(ids[start : start + self.spec.chunk])
            before = len(self.context)
            self.predict(chunk, purpose)
            self.write_prefill(purpose, before, chunk)
            if self.waiting:
                return start + self.spec.chunk >= len(ids)
        return True

    def write_prefill(self, purpose: str, before: int, chunk: list[int]) -> None:
        self.write(
            "prefill",
            **self.place(),
            purpose=purpose,
            start=before,
            ids=chunk,
            pad=0,
            state=self.states,
            start_ns=self.span[0],
            end_ns=self.span[1],
        )

    def predict(self, ids: list[int], purpose: str) -> None:
        if self.state is None:
            self.make(purpose)
        self.predictions += 1
        start_ns = self.t_ns
        self.t_ns += STEP_NS
        if self.predictions in self.spec.warn_in_predictions:
            self.t_ns -= STEP_NS // 2
            self.warn()
            self.t_ns += STEP_NS // 2
        self.span = (start_ns, self.t_ns)
        self.context = self.context + ids
        self.write_rows(ids, purpose)
        self.tick()

    def write_rows(self, ids: list[int], purpose: str) -> None:
        self.kernel_rows = self.kernel_rows + ids

    def make(self, purpose: str) -> None:
        self.flush()
        self.states += 1
        self.state = self.states
        self.kernel_rows = []
        self.footprint += STATE_BYTES
        self.write_state("made", {"turn": "conversation", "decode": "resume"}.get(purpose, purpose))

    def drop(self, purpose: str) -> None:
        self.flush()
        self.footprint -= STATE_BYTES
        self.write_state("released", purpose)
        self.state = None

    def write_state(self, action: str, purpose: str) -> None:
        self.write(
            "state",
            action=action,
            id=self.states,
            purpose=purpose,
            bytes=STATE_BYTES,
            **self.memory(),
        )

    def sample(self) -> int:
        rows, count, nonce = self.kernel_rows, len(self.kernel_rows), int(NONCE, 16)
        mask = (1 << 64) - 1
        digest = nonce
        for probe in range(8):
            row = mix((nonce ^ (count << 8) ^ probe) & mask) % count
            digest = mix((digest ^ rows[row] ^ (row << 32)) & mask)
        ends = self.spec.end_every and digest % self.spec.end_every == 0
        token = self.choose(END_ID if ends else FIRST_ID + digest % (VOCAB - FIRST_ID))
        self.in_hand.append((token, len(self.context), self.span))
        self.consumed = [*self.consumed, token]
        self.generated += 1
        self.tokens_total += 1
        if len(self.in_hand) == 8:
            self.flush()
        return token

    def choose(self, token: int) -> int:
        return token
