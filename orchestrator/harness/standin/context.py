"""The context window: which ids the KV state holds and what to feed it next (contract, R1 to R8).

Pure bookkeeping on token ids: no engine, no memory, no clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Admission:
    """What of a prompt enters the context."""

    used: list[int]  # X of R2 to R4, without the pin that R8 puts in front; empty when refused
    carried: int  # how many of `used` are pending ids


@dataclass(frozen=True, slots=True)
class Trim:
    """What a trim keeps."""

    before: int  # rows
    kept: list[int]
    pinned: int  # how many of `kept` are the pin


class ContextWindow:
    """Ids of one conversation, from its first prompt to its last token."""

    def __init__(self, budget: int, pin_count: int, *, truncates: bool = False) -> None:
        """Start a conversation.

        Args:
            budget: B, the most rows at any prediction.
            pin_count: p, the length of the pinned prefix, at most `budget // 4` (R6).
            truncates: Whether a prompt that does not fit is cut instead of refused (R4).

        Raises:
            ValueError: If the pin is over a quarter of the budget.
        """
        if pin_count > budget // 4:
            raise ValueError(f"pin {pin_count} is over a quarter of the budget {budget}")
        self._budget, self._pin_count, self._truncates = budget, pin_count, truncates
        self._half = budget // 2
        self._accepted: list[int] = []  # L
        self._pending: list[int] = []
        self._turn_start = 0  # place in L of this turn's first id
        self.rows: list[int] = []  # C

    def admit(self, prompt: Sequence[int]) -> Admission:
        """Return what the turn feeds, without changing anything yet (R2, R4)."""
        lost = bool(self._accepted) and not self.rows
        carried = [] if lost else self._pending
        wanted = [*carried, *prompt]
        room = self._budget - (self._pin_count if self._accepted else 0)
        if len(wanted) <= room:
            return Admission(wanted, len(carried))
        if not self._truncates:
            return Admission([], 0)
        pin = [] if self._accepted else wanted[: self._pin_count]
        return Admission(pin + wanted[len(wanted) - (room - len(pin)) :], 0)

    def begin_turn(self, admission: Admission) -> None:
        """Accept the ids of a turn; what was pending is among them or lost."""
        self._turn_start = len(self._accepted)
        self._accepted = self._accepted + admission.used
        self._pending = []

    def ingest_ids(self, admission: Admission) -> list[int]:
        """Return the ids to prefill for the turn; the pin comes first where the state was lost."""
        if self._turn_start and not self.rows:
            return self._accepted[: self._pin_count] + admission.used
        return admission.used

    def resume_ids(self) -> list[int]:
        """Return the ids to prefill before the pending one after an eviction in decode (R8)."""
        body = self._accepted[max(self._turn_start, self._pin_count) :]
        pin = self._accepted[: self._pin_count]
        tail = self._half - len(pin)
        return pin + body[max(0, len(body) - tail) :]

    def overflows(self, count: int) -> bool:
        """Return whether `count` more rows would pass the budget (R3, R5)."""
        return bool(self.rows) and len(self.rows) + count > self._budget

    def can_shrink(self, count: int) -> bool:
        """Return whether a trim would keep fewer rows than there are (R13)."""
        return len(self.rows) > min(self._half, self._budget - count)

    def plan_trim(self, count: int) -> Trim:
        """Return what is kept so that `count` more rows fit (R5)."""
        before = len(self.rows)
        keep = min(before, self._half, self._budget - count)
        pinned = min(self._pin_count, keep)
        tail_start = before - (keep - pinned)
        kept = self.rows if keep == before else self.rows[:pinned] + self.rows[tail_start:]
        return Trim(before, list(kept), pinned)

    def fed(self, ids: Sequence[int]) -> None:
        """Count ids that a prediction has consumed."""
        self.rows.extend(ids)

    def accept(self, token: int) -> None:
        """Count a generated token as part of the conversation; it was fed (R1)."""
        self._accepted.append(token)

    def keep_pending(self, token: int) -> None:
        """Keep the turn's last sampled token for the next turn (R2)."""
        self._pending = [token]

    def clear(self) -> None:
        """Forget the rows: their state is released."""
        self.rows = []


class UntrimmedWindow(ContextWindow):
    """The defect `never-trim`: the budget is passed unseen."""

    def overflows(self, count: int) -> bool:
        """Return False."""
        return False
