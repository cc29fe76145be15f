"""Apps that break one rule of counting, memory, states, streams or speed each."""

from __future__ import annotations

import random

from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import FULL, MIB, STEP_NS, Row, Spec, hash_of


class FullApp(App):
    """A run that triggers every check; the subclass breaks one rule."""

    def __init__(self, spec: Spec | None = None) -> None:
        super().__init__(spec or FULL)


class ForgetsCount(FullApp):
    """Claims the rows from before the trim after it."""

    lost = 0

    def write_trim(self, kept: list[int], k: int) -> Row:
        self.lost = len(self.context) - len(kept)
        return super().write_trim(kept, k)

    def flush(self) -> None:
        self.in_hand = [(token, n + self.lost, span) for token, n, span in self.in_hand]
        super().flush()

    def drop(self, purpose: str) -> None:
        super().drop(purpose)
        if purpose != "trim":
            self.lost = 0


class AuditsFindDrift(FullApp):
    def parity_fields(self) -> Row:
        return {**super().parity_fields(), "max_abs": 1.5}


class AuditsFindOtherOrder(FullApp):
    def parity_fields(self) -> Row:
        return {**super().parity_fields(), "top1_equal": False, "top3_contained": False}


class AuditsFindNoNumber(FullApp):
    """A hostile phone cannot write NaN in JSON; a number of absurd size it can."""

    def parity_fields(self) -> Row:
        return {**super().parity_fields(), "max_abs": 1e308}


class RegistersLate(FullApp):
    def begin(self) -> None:
        super().begin()
        self.records.pop()
        self.is_registered = False

    def write_prefill(self, purpose: str, before: int, chunk: list[int]) -> None:
        super().write_prefill(purpose, before, chunk)
        if not self.is_registered:
            self.write("handler", channel="host", registered=True)
            self.is_registered = True


class NeverRegisters(FullApp):
    def begin(self) -> None:
        super().begin()
        self.records[-1]["registered"] = False


class Leaks(FullApp):
    """A quarter of a MiB for each token."""

    def memory(self) -> dict[str, int]:
        footprint = self.footprint + self.tokens_total * MIB // 4
        return {"footprint": footprint, "host_bytes": footprint // 32}


class GrowsWithRows(FullApp):
    """The cache is concatenated: it takes 128 KiB for each row it holds."""

    def memory(self) -> dict[str, int]:
        footprint = self.footprint + len(self.context) * MIB // 8
        return {"footprint": footprint, "host_bytes": footprint // 32}


class StaysInBackground(FullApp):
    """Keeps its state for as long as it is away, and gives it back on return."""

    def leave(self) -> None:
        self.flush()
        self.write("lifecycle", event="background", phase=self.phase, origin="scenario")
        self.t_ns += 2_000_000_000
        self.write("sample", **self.sample_fields())
        self.write("lifecycle", event="foreground", phase=self.phase, origin="scenario")


class PredictsInBackground(FullApp):
    """Says that it is away and goes on."""

    def leave(self) -> None:
        self.flush()
        self.write("lifecycle", event="background", phase=self.phase, origin="scenario")
        self.evict("background")
        self.dry += 1


class StandsStill(FullApp):
    """Lives for 40 s without a prediction."""

    def predict(self, ids: list[int], purpose: str) -> None:
        if self.predictions == 150:
            for _ in range(8):
                self.t_ns += 5_000_000_000
                self.tick()
        super().predict(ids, purpose)


class StatePerToken(FullApp):
    """A new state for each decode step, its rows copied: nobody fed them again."""

    def prepare(self) -> bool:
        ready = super().prepare()
        if self.context:
            rows = self.kernel_rows
            self.drop("end")
            self.make("resume")
            self.kernel_rows = rows
        return ready


class MakesBeforeRelease(FullApp):
    def trim(self, k: int) -> None:
        self.flush()
        self.write("breadcrumb", about="trim", detail="budget")
        kept = self.kept(self.keep_count(k))
        cut = self.write_trim(kept, k)
        old = self.states
        self.make("trim")
        new, self.states = self.states, old
        self.drop("trim")
        self.state = self.states = new
        self.context = []
        self.feed(kept, "trim")
        self.notice(cut)
        self.answer()


class KeepsStateAtTheEnd(FullApp):
    def drop(self, purpose: str) -> None:
        if purpose != "end" or self.tokens_total < self.spec.stop_after:
            super().drop(purpose)


class EndsTwice(FullApp):
    def finish_turn(self, reason: str) -> None:
        super().finish_turn(reason)
        ended = {key: value for key, value in self.records[-1].items() if key != "seq"}
        if ended["kind"] == "turn_end" and self.counts["turns"] == 3:
            self.write("turn_end", **{key: ended[key] for key in list(ended)[3:]})


class ConsumerMissesOne(FullApp):
    def finish_turn(self, reason: str) -> None:
        self.consumed = self.consumed[:-1]
        super().finish_turn(reason)


class ConsumerSeesOthers(FullApp):
    def finish_turn(self, reason: str) -> None:
        super().finish_turn(reason)
        for row in reversed(self.records):
            if row["kind"] == "turn_end":
                row["text_hash"] = hash_of([*self.consumed, 7][1:])
                return


class DecodesEachToken(FullApp):
    """Shows each group's bytes by themselves."""

    def text_fields(self, tokens: list[int]) -> Row:
        data = b"".join(self.bytes_of(token) for token in tokens)
        return {"text_bytes": len(data), "text": data.decode(errors="replace")}


class LosesText(FullApp):
    def text_fields(self, tokens: list[int]) -> Row:
        fields = super().text_fields(tokens)
        return {**fields, "text": str(fields["text"])[:-1]}


class SaysOneThing(FullApp):
    """Long turns of one id."""

    def __init__(self) -> None:
        super().__init__(Spec(turn_limit=120, end_every=0, stop_after=500))

    def choose(self, token: int) -> int:
        return 17


class SlowsDown(FullApp):
    """Each step takes 0.2 % longer than the one before it."""

    def predict(self, ids: list[int], purpose: str) -> None:
        super().predict(ids, purpose)
        self.t_ns += int(STEP_NS * self.extra_ratio())
        self.span = (self.span[0], self.t_ns)

    def extra_ratio(self) -> float:
        return self.tokens_total * 0.002


class IsSlow(SlowsDown):
    def extra_ratio(self) -> float:
        return 0.3


class SlowsWithHeat(SlowsDown):
    """Half as fast, and the phone says why."""

    def extra_ratio(self) -> float:
        hot = self.tokens_total >= 400
        if hot and self.thermal == "nominal":
            self.thermal = "serious"
            self.write("sample", **self.sample_fields())
        return 1.0 if hot else 0.0


class FeedsContextAgain(SlowsDown):
    """A step takes a twentieth more for each row."""

    def extra_ratio(self) -> float:
        return len(self.context) / 20.0


class JitteryApp(SlowsDown):
    """Steps vary by a fifth, around the right speed."""

    def __init__(self) -> None:
        super().__init__()
        self.draw = random.Random(5)

    def extra_ratio(self) -> float:
        return self.draw.uniform(-0.2, 0.2)
