"""Checks of the token stream as its consumer sees it: it ends once, and it is not stuck."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from orchestrator.runlog.telemetry import (
    AnyRecord,
    Bye,
    Fault,
    Hello,
    Tokens,
    TurnEnd,
    TurnStart,
)
from orchestrator.verdict.check import Check, CheckInfo, Limit, Setting

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.runlog.telemetry import Record
    from orchestrator.verdict.check import Closing

_HASH_DIGITS: Final = 16
_ID_BYTES: Final = 4
_LOOP_FAULTS: Final = frozenset({"constant_output", "repetition"})


class StreamEndsOnce(Check):
    """Each turn's stream ends exactly once, right after its last token."""

    info = CheckInfo(
        id="stream.ends-once",
        title="Every stream ends exactly once",
        meaning=(
            "Each turn has one end; no token follows an end token, the turn's limit or the end"
            " itself; and the consumer saw exactly the tokens that were sampled, by count and hash."
        ),
        causes=(
            "the end token is not compared before the next step",
            "finish is called by the loop and by its error path",
            "the consumer drops what is buffered when the turn ends",
        ),
        what_to_do=(
            "compare the end token before the next step, and finish the stream in one place",
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._ends = 0
        self._end_ids: frozenset[int] = frozenset()
        self._open: tuple[int, int] | None = None  # conversation and turn
        self._limit: int | None = None
        self._count = 0
        self._ended_by: str | None = None  # what the stream's last token makes due
        self._hash = hashlib.sha256()

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        match record:
            case Hello():
                self._open, self._end_ids = None, frozenset(record.end_ids)
            case TurnStart():
                self._on_start(record)
            case Tokens():
                self._on_tokens(record)
            case TurnEnd():
                self._on_end(record)
            case Bye() if self._open is not None:
                self.faults.add(record, f"turn {self._open} never ended")
            case _:
                pass

    def _on_start(self, record: TurnStart) -> None:
        if self._open is not None:
            self.faults.add(record, f"a turn began and turn {self._open} had not ended")
        self._open, self._limit = (record.conversation, record.turn), record.limit
        self._count, self._ended_by, self._hash = 0, None, hashlib.sha256()

    def _on_tokens(self, record: Tokens) -> None:
        if self._open is None:
            self.faults.add(record, "a token came after the stream's end")
        for token in record.ids:
            if self._ended_by is not None:
                self.faults.add(record, f"a token follows {self._ended_by}")
            self._count += 1
            self._hash.update(token.to_bytes(_ID_BYTES, "little", signed=token < 0)[:_ID_BYTES])
            self._ended_by = self._due(token)

    def _due(self, token: int) -> str | None:
        if token in self._end_ids:
            return "the end token"
        return "the turn's last token" if self._count == self._limit else None

    def _on_end(self, record: TurnEnd) -> None:
        turn = (record.conversation, record.turn)
        if self._open != turn:
            self.faults.add(record, f"turn {turn} ended that was not running: an end too many")
            return
        self._ends += 1
        self._open = None
        self._judge_consumer(record)

    def _judge_consumer(self, record: TurnEnd) -> None:
        if record.consumed != self._count:
            text = f"the consumer saw {record.consumed} tokens of {self._count}"
            self.faults.add(record, text)
        elif record.text_hash != self._hash.hexdigest()[:_HASH_DIGITS]:
            self.faults.add(record, "the consumer saw other tokens than were sampled")

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the number of streams."""
        if self.faults.count:
            return self.failed(self.faults.count, "streams ended wrongly", 0)
        if not self._ends:
            return self.unmeasured("no turn ended")
        return self.passed(self._ends, "streams")


class StreamSane(Check):
    """The tokens do not repeat themselves."""

    info = CheckInfo(
        id="stream.sane",
        title="The output is not stuck in a loop",
        meaning=(
            "Within a turn no cycle of up to eight tokens repeats for longer than the limit, and"
            " the app itself finds no loop: a decoder that reads stale logits, or whose cache is"
            " broken, says one thing for ever."
        ),
        causes=(
            "the logits of the first step are sampled again and again",
            "the position is not advanced",
            "numerical overflow: every logit is the same or not a number",
        ),
        what_to_do=(
            "check that position and mask advance with every step",
            "look for logits that are not finite: a `fault` record says so",
        ),
        limits=(Limit("max_repeated_tokens", 48.0, "tokens", "that may continue one cycle"),),
    )
    _LONGEST_CYCLE: Final = 8

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._most = self.limit("max_repeated_tokens")
        self._tokens = 0
        self._longest = 0
        self._recent: list[int] = []  # the last ids of the turn, the newest last
        self._repeats = [0] * self._LONGEST_CYCLE  # tokens that continue a cycle, by its length
        self._blamed = False  # this turn was

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        if isinstance(record, TurnStart):
            self._recent, self._blamed = [], False
            self._repeats = [0] * self._LONGEST_CYCLE
        elif isinstance(record, Tokens):
            for token in record.ids:
                self._take(token, record)
        elif isinstance(record, Fault) and record.code in _LOOP_FAULTS:
            self.faults.add(record, f"the app reports {record.code}")

    def _take(self, token: int, record: Record) -> None:
        self._tokens += 1
        recent = self._recent
        for length in range(1, len(recent) + 1):
            same = recent[-length] == token
            self._repeats[length - 1] = self._repeats[length - 1] + 1 if same else 0
        recent.append(token)
        del recent[: -self._LONGEST_CYCLE]
        repeated = max(self._repeats)
        self._longest = max(self._longest, repeated)
        if repeated > self._most and not self._blamed:
            length = self._repeats.index(repeated) + 1
            self.faults.add(record, f"a cycle of {length} tokens goes on for {repeated} tokens")
            self._blamed = True

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the longest repetition."""
        limit = int(self._most)
        if self.faults.count:
            return self.failed(self._longest, "tokens repeated", limit)
        if self._tokens <= limit:
            return self.unmeasured(f"{self._tokens} tokens are too few to tell a loop")
        return self.passed(self._longest, "tokens repeated", limit)
