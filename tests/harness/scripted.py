"""A scripted engine and a log of operations, as the contract's vectors write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orchestrator.harness.standin.context import Admission, ContextWindow, Trim
from orchestrator.harness.standin.pipeline import Pipeline
from orchestrator.harness.standin.ports import (
    Chunk,
    Phase,
    PredictionError,
    Sample,
    Turn,
    TurnRules,
)
from orchestrator.harness.standin.pressure import Interruption, Pressure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Operation = dict[str, Any]


class ScriptEnded(Exception):
    """The script has no more tokens; the prediction before was the turn's last."""


class Script:
    """Engine, log and attendant of a pipeline under test, in one list of operations.

    `during` maps the ordinal of a prediction within the turn to what happens while it is in flight.
    """

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.sampled: list[int] = []
        self.during: dict[int, Callable[[], None]] = {}
        self.after_token: Callable[[int], None] = lambda _: None
        self.low = False
        self._ordinal = 0
        self._rows = 0
        self._made = 0

    def script(self, sampled: Iterable[int], during: dict[int, Callable[[], None]]) -> None:
        self.sampled, self.during = list(sampled), during
        self.operations, self._ordinal = [], 0

    def _note(self, op: str, **facts: object) -> None:
        self.operations.append({"op": op, **facts})

    def named(self, op: str) -> list[Operation]:
        return [operation for operation in self.operations if operation["op"] == op]

    # Engine

    def make_state(self, purpose: str) -> None:
        self._rows, self._made = 0, self._made + 1
        self._note("make", state=self._made, purpose=purpose)

    def release_state(self, purpose: str) -> None:
        self._note("drop", state=self._made, purpose=purpose)

    def predict(self, ids: Sequence[int], purpose: str) -> tuple[int, int]:
        self._ordinal += 1
        self._rows += len(ids)
        name = "prompt" if purpose == "turn" else purpose
        self._note("predict", purpose=name, ids=list(ids), n=self._rows)
        self.during.get(self._ordinal, lambda: None)()
        return self._ordinal, self._ordinal

    def sample(self) -> int:
        if not self.sampled:
            raise ScriptEnded
        return self.sampled.pop(0)

    # TurnLog

    def turn_started(self, turn: Turn, admission: Admission) -> None:
        if not admission.used:
            return
        self._note("turn", used=admission.used, carried=admission.carried)

    def prefilled(self, chunk: Chunk) -> None:
        assert chunk.start + len(chunk.ids) == self._rows

    def sampled_token(self, sample: Sample) -> None:
        self._note("sample", id=sample.token, n=sample.rows)

    def trimming(self, trim: Trim, count: int, reason: str, phase: Phase, state: int) -> int:
        self._note("trim", before=trim.before, kept=trim.kept, reason=reason, k=count)
        return len(self.operations)

    def about_to_evict(self, rows: int) -> None:
        self._note("breadcrumb", rows=rows)

    def evicting(self, interruption: Interruption, rows: int, phase: Phase, state: int) -> int:
        self._note(
            "evict",
            before=rows,
            reason=interruption.reason,
            warnings=interruption.warnings,
            phase=str(phase),
        )
        return len(self.operations)

    def state(self, action: str, number: int, purpose: str) -> None:
        assert number == self._made

    def notice(self, for_seq: int) -> None:
        self._note("notice", for_seq=for_seq)

    def fault(self, code: str, message: str, phase: Phase) -> None:
        self._note("fault", code=code, phase=str(phase))

    # Attendant

    def after_sample(self, token: int) -> None:
        self.after_token(token)

    def after_eviction(self) -> None:
        self._note("evicted")

    def memory_is_low(self) -> bool:
        return self.low


class Log:
    """The script as a log: there `sampled` is an event, in the engine it is what is left to say."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def sampled(self, sample: Sample) -> None:
        self._script.sampled_token(sample)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the script has
        return getattr(self._script, name)


class Talk:
    """One conversation under test."""

    def __init__(
        self,
        budget: int,
        *,
        pin: int = 0,
        chunk: int = 4,
        end_ids: Iterable[int] = (0,),
        truncates: bool = False,
    ) -> None:
        self.script = Script()
        self.pressure = Pressure()
        self._warnings = 0
        self._turns = 0
        self.pipeline = Pipeline(
            lambda: ContextWindow(budget, pin, truncates=truncates),
            TurnRules(frozenset(end_ids), chunk),
            self.script,
            Log(self.script),
            self.script,
            self.pressure,
        )

    def warn(self) -> None:
        def record() -> int:
            self._warnings += 1
            return self._warnings

        self.pressure.warn(record)

    def leave(self) -> None:
        self.pressure.set_foreground(False, lambda: None)

    def come_back(self) -> None:
        self.pressure.set_foreground(True, lambda: None)

    @staticmethod
    def fail() -> None:
        raise PredictionError("nan", "the logits are not finite")

    def turn(
        self,
        prompt: Sequence[int],
        sampled: Iterable[int],
        *,
        limit: int | None = None,
        during: dict[int, Callable[[], None]] | None = None,
    ) -> str:
        """Play a turn and return its reason, `script` where the script ran out before its end."""
        self.script.script(sampled, during or {})
        self._turns += 1
        try:
            return self.pipeline.turn(Turn(1, self._turns, list(prompt), limit))
        except ScriptEnded:
            self.pipeline.settle()
            return "script"
