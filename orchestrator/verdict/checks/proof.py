"""Check that the KV memory holds what the contract predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.verdict.check import Check, CheckInfo, Setting

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.runlog.telemetry import AnyRecord
    from orchestrator.verdict.check import Closing


class ContextProven(Check):
    """Every generated token is the one that the predicted context gives."""

    info = CheckInfo(
        id="context.proven",
        title="The tokens prove the context",
        meaning=(
            "Each token is recomputed from the context that the host predicted and the nonce it"
            " drew: a stale row, a lost count or a skipped chunk gives another token, whatever the"
            " records say."
        ),
        causes=(
            "a trim leaves the old rows in the state",
            "a token is fed twice or not at all",
            "a chunk is written to the wrong place",
        ),
        what_to_do=(
            "find the first token that the sentence names: rows before it were right",
            "check what was fed after the last trim, eviction or reload",
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._proven = 0
        self._disproved = 0

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        expectation = self.setting.expectation
        if not expectation.witnessed:
            return
        self._proven += expectation.witnessed - expectation.disproved
        self._disproved += expectation.disproved
        if expectation.disproved:
            self.faults.add(record, "a token is not the one that the predicted context gives")

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the number of tokens proven, or disproved."""
        if self._disproved:
            return self.failed(self._disproved, "tokens disproved", 0)
        if not self._proven:
            hello = closing.tally.hello
            provable = hello is None or hello.engine == "witness"
            return self.unmeasured(
                "no token was sampled" if provable else f"engine {hello and hello.engine}"
            )
        return self.passed(self._proven, "tokens proven")
