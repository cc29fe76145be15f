"""A typed difference between what the contract predicts and what a phone's record says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DeviationKind(StrEnum):
    """What differs; each kind is reported by one check."""

    HELLO = "hello"  # the launch states impossible rules
    PROMPT = "prompt"  # another prompt, another X, another number of carried ids
    REFUSAL = "refusal"  # refused where it fits, or taken where it does not (R4)
    PREFILL = "prefill"  # other ids, purpose or place of a chunk
    RESUME = "resume"  # other ids after an eviction (R8)
    ROWS = "rows"  # another number of rows
    TRIM_MISSING = "trim_missing"  # the budget called for a trim and none came (R3, R5)
    TRIM_UNEXPECTED = "trim_unexpected"  # a trim where none was due
    TRIM_COUNTS = "trim_counts"  # before, k, reason or phase of a trim
    TRIM_KEPT = "trim_kept"  # counts or ids of what a trim keeps
    EVICT = "evict"  # an eviction at a wrong moment or with wrong counts (R7)
    TURN = "turn"  # order, end reason or totals of a turn (R2)
    TOKEN = "token"  # noqa: S105 - a sampled token that the predicted context does not give


SCHEDULE_KINDS = frozenset(
    {
        DeviationKind.HELLO,
        DeviationKind.PROMPT,
        DeviationKind.REFUSAL,
        DeviationKind.PREFILL,
        DeviationKind.RESUME,
        DeviationKind.ROWS,
        DeviationKind.TRIM_MISSING,
        DeviationKind.TRIM_UNEXPECTED,
        DeviationKind.TRIM_COUNTS,
        DeviationKind.TURN,
    }
)


@dataclass(frozen=True, slots=True)
class Deviation:
    """One difference, on the record that shows it."""

    kind: DeviationKind
    text: str  # one sentence for people
    launch: str
    seq: int
