"""Apps that break one rule of the contract each, and the check that must catch it.

Most lie: they write what they did, not that it was wrong. The last ones write what they should have
done and do something else with the KV memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import BOS_ID, STATE_BYTES, Row, Spec

if TYPE_CHECKING:
    from collections.abc import Sequence


class NeverTrims(App):
    def must_trim(self, k: int) -> bool:
        return False


class TrimsOneLate(App):
    def must_trim(self, k: int) -> bool:
        return len(self.context) + k > self.spec.budget + 1


class TrimsOneEarly(App):
    def must_trim(self, k: int) -> bool:
        return len(self.context) + k > self.spec.budget - 1


class KeepsHead(App):
    def kept(self, keep: int) -> list[int]:
        return self.context[:keep]


class TailOffByOne(App):
    def kept(self, keep: int) -> list[int]:
        right = super().kept(keep)
        return [*right[:1], self.context[len(self.context) - len(right)], *right[1:-1]]


class KeepsOneFewer(App):
    def keep_count(self, k: int) -> int:
        return super().keep_count(k) - 1


class KeepsOverRoom(App):
    """The fault of the published code: half a budget is kept whatever arrives."""

    def keep_count(self, k: int) -> int:
        return min(len(self.context), self.half)


class DropsBos(App):
    def kept(self, keep: int) -> list[int]:
        return self.context[len(self.context) - keep :]


class DoublesBos(App):
    def kept(self, keep: int) -> list[int]:
        return [BOS_ID, *super().kept(keep)[:-1]]


class FeedsAnotherTailThanItStates(App):
    def feed(self, ids: Sequence[int], purpose: str) -> bool:
        return super().feed([*ids[:-1], 5] if purpose == "trim" else ids, purpose)


class ForgetsPending(App):
    def opening(self, prompt: list[int]) -> tuple[list[int], int]:
        self.pending = []
        return super().opening(prompt)


class KeepsPendingOverEviction(App):
    def opening(self, prompt: list[int]) -> tuple[list[int], int]:
        return self.pending + prompt, len(self.pending)


class ResumesWithoutPin(App):
    def resume_ids(self) -> list[int]:
        return super().resume_ids()[1:]


class ResumesFromAnotherTail(App):
    def resume_ids(self) -> list[int]:
        right = super().resume_ids()
        return [*right[:-1], 7]


class ResumesWithEarlierTurns(App):
    def resume_ids(self) -> list[int]:
        body = self.accepted[self.spec.pin :]
        return [BOS_ID, *body[max(0, len(body) - self.half + 1) :]]


class RestartsIngestWithoutPin(App):
    def ingest(self, used: list[int]) -> bool:
        self.lead = []
        return super().ingest(used)


class TruncatesSilently(App):
    def prompt(self) -> list[int]:
        return super().prompt()[:-1]


class UsesFewerThanPrompted(App):
    def opening(self, prompt: list[int]) -> tuple[list[int], int]:
        used, carried = super().opening(prompt)
        return used[:-1], carried


class TakesTooLongPrompts(App):
    def too_long(self, wanted: list[int], room: int) -> tuple[list[int], int]:
        return wanted[-room:], 0


class RefusesWhatFits(App):
    def opening(self, prompt: list[int]) -> tuple[list[int], int]:
        return ([], 0) if self.turn == 2 else super().opening(prompt)


class IgnoresEndToken(App):
    def ends(self, token: int) -> str | None:
        return super().ends(token or 1)


class PassesTurnLimit(App):
    def ends(self, token: int) -> str | None:
        reason = super().ends(token)
        return None if reason == "turn_limit" and self.generated < 26 else reason


class LivelocksUnderPressure(App):
    def answer(self) -> bool:
        super().answer()
        return True


class RepeatsTurnNumber(App):
    def next_turn(self) -> None:
        super().next_turn()
        if self.conversation == 2 and self.turn == 2:
            self.turn = 1


class ChunksDifferently(App):
    def write_prefill(self, purpose: str, before: int, chunk: list[int]) -> None:
        super().write_prefill(purpose, before, chunk[:-1] if len(chunk) == 8 else chunk)


class CountsRowsFromOne(App):
    def flush(self) -> None:
        self.in_hand = [(token, n + 1, span) for token, n, span in self.in_hand]
        super().flush()


class NeverEvicts(App):
    def warn(self) -> None:
        super().warn()
        self.waiting = []

    def evict(self, reason: str = "memory_warning") -> None:
        """Do nothing."""


class EvictsUnasked(App):
    def answer(self) -> bool:
        if self.tokens_total == 100 and not self.waiting:
            self.evict()
            self.dry += 1
        return super().answer()


class AnswersTwice(App):
    def evict(self, reason: str = "memory_warning") -> None:
        super().evict()
        self.records[-3]["warnings"] = [1]


class KeepsMemory(App):
    def write_state(self, action: str, purpose: str) -> None:
        if purpose == "evict":
            self.footprint += STATE_BYTES
        super().write_state(action, purpose)
        if purpose == "evict":
            self.footprint -= STATE_BYTES


class HidesTrims(App):
    def notice(self, cut: Row) -> None:
        if cut["kind"] != "trim":
            super().notice(cut)


class HidesEvictions(App):
    def notice(self, cut: Row) -> None:
        if cut["kind"] != "evict":
            super().notice(cut)


class ShowsTrimsTwice(App):
    def notice(self, cut: Row) -> None:
        super().notice(cut)
        if cut["kind"] == "trim":
            super().notice(cut)


class ShowsInvisibly(App):
    def notice(self, cut: Row) -> None:
        super().notice(cut)
        self.records[-1]["shown"] = False


class MakesBeforeRelease(App):
    def trim(self, k: int) -> None:
        old = self.states
        super().trim(k)
        released = next(row for row in reversed(self.records) if row["kind"] == "state")
        made = next(row for row in self.records if row["kind"] == "state" and row["id"] == old)
        assert released is not made
        self._swap(old)

    def _swap(self, old: int) -> None:
        places = [
            place
            for place, row in enumerate(self.records)
            if row["kind"] == "state" and (row["id"], row["action"]) in self._pair(old)
        ]
        first, second = places
        self.records[first], self.records[second] = self.records[second], self.records[first]

    @staticmethod
    def _pair(old: int) -> set[tuple[object, object]]:
        return {(old, "released"), (old + 1, "made")}


class OverlapsPredictions(App):
    def predict(self, ids: list[int], purpose: str) -> None:
        super().predict(ids, purpose)
        start_ns, end_ns = self.span
        self.span = (start_ns - 3000, end_ns)


class KeepsOldRowsInMemory(App):
    """The records say what should have been fed; the rows of the old state stay."""

    def trim(self, k: int) -> None:
        self.stale = self.kernel_rows
        super().trim(k)

    def write_rows(self, ids: list[int], purpose: str) -> None:
        start = len(self.kernel_rows)
        rows = self.stale[start : start + len(ids)] if purpose == "trim" else ids
        super().write_rows(rows, purpose)


class FeedsTokenTwice(App):
    def write_rows(self, ids: list[int], purpose: str) -> None:
        twice = purpose == "decode" and self.predictions % 40 == 0
        super().write_rows(ids * 2 if twice else ids, purpose)


class DropsFirstRow(App):
    def write_rows(self, ids: list[int], purpose: str) -> None:
        super().write_rows(ids if self.kernel_rows else ids[1:], purpose)


class UsesAnotherBudget(App):
    """States the right budget and works by a smaller one."""

    def must_trim(self, k: int) -> bool:
        return len(self.context) + k > 32 + 16


LONG_PROMPTS = Spec(max_ids=80, min_ids=50, turn_limit=12)
PRESSED = Spec(warn_in_predictions=frozenset(range(20, 400, 3)))

BROKEN: list[tuple[type[App], Spec, str]] = [
    (NeverTrims, Spec(), "budget.never-exceeded"),
    (NeverTrims, Spec(), "trim.on-schedule"),
    (TrimsOneLate, Spec(), "budget.never-exceeded"),
    (TrimsOneEarly, Spec(), "trim.on-schedule"),
    (UsesAnotherBudget, Spec(), "trim.on-schedule"),
    (KeepsHead, Spec(), "trim.keeps-tail"),
    (TailOffByOne, Spec(), "trim.keeps-tail"),
    (KeepsOneFewer, Spec(), "trim.keeps-tail"),
    (KeepsOverRoom, Spec(min_ids=40, max_ids=45), "trim.keeps-tail"),
    (DropsBos, Spec(), "trim.keeps-tail"),
    (DoublesBos, Spec(), "trim.keeps-tail"),
    (FeedsAnotherTailThanItStates, Spec(), "trim.keeps-tail"),
    (ForgetsPending, Spec(), "trim.on-schedule"),
    (KeepsPendingOverEviction, Spec(), "trim.on-schedule"),
    (ResumesWithoutPin, Spec(), "trim.on-schedule"),
    (ResumesFromAnotherTail, Spec(), "trim.on-schedule"),
    (ResumesWithEarlierTurns, PRESSED, "trim.on-schedule"),
    (RestartsIngestWithoutPin, Spec(), "trim.on-schedule"),
    (TruncatesSilently, Spec(), "trim.on-schedule"),
    (UsesFewerThanPrompted, Spec(), "trim.on-schedule"),
    (TakesTooLongPrompts, LONG_PROMPTS, "trim.on-schedule"),
    (RefusesWhatFits, Spec(), "trim.on-schedule"),
    (IgnoresEndToken, Spec(), "trim.on-schedule"),
    (PassesTurnLimit, Spec(), "trim.on-schedule"),
    (LivelocksUnderPressure, PRESSED, "trim.on-schedule"),
    (RepeatsTurnNumber, Spec(), "trim.on-schedule"),
    (ChunksDifferently, Spec(), "trim.on-schedule"),
    (CountsRowsFromOne, Spec(), "trim.on-schedule"),
    (NeverEvicts, Spec(), "evict.on-warning"),
    (EvictsUnasked, Spec(), "evict.on-warning"),
    (AnswersTwice, Spec(), "evict.on-warning"),
    (KeepsMemory, Spec(), "evict.frees-memory"),
    (HidesTrims, Spec(), "trim.notice"),
    (ShowsTrimsTwice, Spec(), "trim.notice"),
    (HidesEvictions, Spec(), "evict.notice"),
    (ShowsInvisibly, Spec(), "evict.notice"),
    (MakesBeforeRelease, Spec(), "state.serialised"),
    (OverlapsPredictions, Spec(), "state.serialised"),
    (KeepsOldRowsInMemory, Spec(), "context.proven"),
    (FeedsTokenTwice, Spec(), "context.proven"),
    (DropsFirstRow, Spec(), "context.proven"),
]
