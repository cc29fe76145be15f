"""The context of one conversation, by the rules of the pipeline contract (R1, R3 to R8).

It knows token ids and counts alone: no records, no clock, no engine. Two drivers share it: the
replay of vector files, which decides what happens next, and the expectation, which follows what a
phone says happened. Rule numbers are those of `docs/contract.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

# A correct pipeline stays within its budget; a broken one must not fill the host's memory.
MAX_ROWS: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class Opening:
    """What a turn feeds: the `X` of R2 to R4, and how many of its ids were pending."""

    used_ids: list[int]  # empty where the turn is refused
    carried: int
    refused: bool
    offered: int  # ids before any truncation


@dataclass(frozen=True, slots=True)
class TrimPlan:
    """What R5 keeps of a context of `before` rows to make room for `k` more."""

    before: int
    kept_ids: list[int]
    kept: int  # rows; more than `kept_ids` only where the phone claims rows nobody predicted
    pinned: int
    k: int


class ContextWindow:
    """Rows of the KV state, the pin, and the ids of the running turn.

    Attributes:
        rows: The ids that the state has consumed, `C`.
        surplus: Rows the phone claims beyond `rows`; 0 in a correct run.
        pending: The token that was sampled last and not fed, empty or one id.

    Args:
        budget: B, the most rows at any prediction.
        pin: p, length of the pinned prefix.

    Raises:
        ValueError: If the pin is over a quarter of the budget (R6).
    """

    def __init__(self, budget: int, pin: int) -> None:
        if budget < 1 or not 0 <= pin <= budget // 4:
            raise ValueError(f"a pin of {pin} does not fit a budget of {budget} (R6)")
        self.budget, self.pin, self.half = budget, pin, budget // 2
        self.rows: list[int] = []
        self.surplus = 0
        self.pending: list[int] = []
        self._head: list[int] = []  # the pin, as far as ids were accepted
        self._lead: list[int] = []  # the pin as it stood when the turn began
        self._used: list[int] = []
        self._body: list[int] = []  # ids of this turn that are not in the pin
        self._accepted = 0

    @property
    def row_count(self) -> int:
        """Rows that the state holds, the phone's surplus included."""
        return len(self.rows) + self.surplus

    def start_conversation(self) -> None:
        """Forget everything: the state was released and a new conversation begins."""
        self.release()
        self.pending, self._accepted = [], 0
        self._head, self._lead, self._used, self._body = [], [], [], []

    def opening(self, prompt: Sequence[int], *, truncate: bool = False) -> Opening:
        """Return what the next turn feeds, or that it must be refused (R4).

        After an eviction between turns the pending token is lost with the earlier turns (R8).
        """
        lost = self._accepted > 0 and not self.rows
        carried = [] if lost else self.pending
        used = [*carried, *prompt]
        room = self.budget - (self.pin if self._accepted else 0)
        if len(used) <= room:
            return Opening(used, len(carried), refused=False, offered=len(used))
        if not truncate:
            return Opening([], 0, refused=True, offered=len(used))
        front = [] if self._accepted else used[: self.pin]
        kept = front + used[len(used) - (room - len(front)) :]
        return Opening(kept, 0, refused=False, offered=len(used))

    def open(self, used_ids: list[int]) -> None:
        """Begin a turn that feeds `used_ids`."""
        self._lead, self._used, self._body = list(self._head), used_ids, []
        self.pending = []
        for token in used_ids:
            self.accept(token)

    def accept(self, token: int) -> None:
        """Add an id to what the conversation has accepted, `L`."""
        self._accepted += 1
        (self._head if len(self._head) < self.pin else self._body).append(token)
        # R8 needs the last half a budget alone; a turn without a limit must not grow the host.
        if len(self._body) > MAX_ROWS:
            del self._body[: max(0, len(self._body) - self.half)]

    def ingest_ids(self) -> list[int]:
        """Return what brings the turn in from the present state (R3, R8)."""
        return list(self._used) if self.rows else self._lead + self._used

    def resume_ids(self) -> list[int]:
        """Return what is fed after an eviction while decoding: pin and this turn's tail (R8)."""
        tail = self.half - len(self._head)
        return self._head + self._body[max(0, len(self._body) - tail) :]

    def overflows(self, k: int) -> bool:
        """Return whether `k` more rows call for a trim (R5)."""
        return self.row_count > 0 and self.row_count + k > self.budget

    def trim_plan(self, k: int) -> TrimPlan:
        """Return what a trim for `k` more rows keeps (R5)."""
        count = self.row_count
        keep = max(0, min(count, self.half, self.budget - k))
        pinned = min(self.pin, keep)
        return TrimPlan(count, self.kept_ids(keep, pinned), keep, pinned, k)

    def kept_ids(self, keep: int, pinned: int) -> list[int]:
        """Return the first `pinned` rows and the last `keep - pinned`; all where few are held."""
        if keep >= len(self.rows):
            return list(self.rows)
        tail = max(0, keep - pinned)
        return self.rows[: max(0, pinned)] + self.rows[len(self.rows) - tail :]

    def feed(self, ids: Sequence[int]) -> None:
        """Add rows."""
        self.rows.extend(ids)

    def bound(self) -> None:
        """Drop the oldest rows where a phone claims more than any model holds."""
        cut = len(self.rows) - MAX_ROWS
        if cut > 0:
            del self.rows[:cut]
            self.surplus += cut

    def release(self) -> None:
        """Drop all rows: the state was released."""
        self.rows, self.surplus = [], 0
