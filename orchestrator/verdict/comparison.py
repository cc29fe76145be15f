"""What a record states beside what the contract predicts: the difference in one sentence, or None.

Pure comparisons; which prediction a record is held against is the follower's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.verdict.deviation import DeviationKind

if TYPE_CHECKING:
    from orchestrator.runlog.telemetry import Evict, Trim, TurnEnd, TurnStart
    from orchestrator.verdict.progress import Turn
    from orchestrator.verdict.window import Opening, TrimPlan

Difference = tuple[DeviationKind, str]

_INPUT_ENDINGS: Final = frozenset({"cancelled", "fault"})  # they may end a turn at any step


def opening_difference(record: TurnStart, opening: Opening) -> Difference | None:
    """Compare what a turn feeds, or that it is refused (R2, R4, R8)."""
    if opening.refused == bool(record.used_ids):
        verb = "taken" if record.used_ids else "refused"
        return DeviationKind.REFUSAL, f"a turn of {opening.offered} ids was {verb} (R4)"
    if (record.used_ids, record.carried) == (opening.used_ids, opening.carried):
        return None
    return (
        DeviationKind.PROMPT,
        (
            f"the turn uses {len(record.used_ids)} ids with {record.carried} carried; expected"
            f" were {len(opening.used_ids)} with {opening.carried} (R2, R8)"
        ),
    )


def ending_difference(record: TurnEnd, turn: Turn) -> Difference | None:
    """Compare the reason a turn ended with (R2)."""
    free = turn.ending is None and record.reason in _INPUT_ENDINGS
    if record.reason == turn.ending or free:
        return None
    due = turn.ending or "no end yet"
    return DeviationKind.TURN, f"the turn ended as {record.reason}; due was {due} (R2)"


def totals_difference(record: TurnEnd, turn: Turn) -> Difference | None:
    """Compare the tokens of a turn with its samples."""
    if (record.generated, record.consumed) == (turn.generated, turn.generated):
        return None
    return (
        DeviationKind.TURN,
        (
            f"the turn ended with {record.generated} tokens generated and {record.consumed}"
            f" consumed; {turn.generated} were recorded"
        ),
    )


def trim_difference(record: Trim, plan: TrimPlan, *, low_memory: bool) -> Difference | None:
    """Compare when and why a trim that is due happens (R3, R13)."""
    reasons = ("budget", "low_memory") if low_memory else ("budget",)
    if (record.before, record.k) == (plan.before, plan.k) and record.reason in reasons:
        return None
    return (
        DeviationKind.TRIM_COUNTS,
        (
            f"the trim for {record.reason} states {record.before} rows and {record.k} more;"
            f" expected were {plan.before} and {plan.k} (R3)"
        ),
    )


def kept_difference(record: Trim, plan: TrimPlan) -> Difference | None:
    """Compare how much a trim keeps (R5, R6)."""
    if (record.kept, record.pinned) == (plan.kept, plan.pinned):
        return None
    return (
        DeviationKind.TRIM_KEPT,
        (
            f"the trim keeps {record.kept} rows with {record.pinned} pinned; expected were"
            f" {plan.kept} with {plan.pinned} (R5, R6)"
        ),
    )


def evict_difference(record: Evict, turn: Turn | None, row_count: int) -> Difference | None:
    """Compare the counts and the phase of an eviction (R7)."""
    phases = ("idle",) if turn is None else turn.phases
    # A failed decode may or may not have written its row.
    slack = 1 if record.reason == "fault" else 0
    if (
        row_count <= record.before <= row_count + slack
        and record.before > 0
        and record.phase in phases
        and (record.kept, record.pinned, record.k) == (0, 0, 0)
    ):
        return None
    return (
        DeviationKind.EVICT,
        (
            f"the eviction states {record.before} rows in phase {record.phase}; predicted were"
            f" {row_count} in {' or '.join(phases)} (R7)"
        ),
    )


def unsampled_difference(record: Evict, turn: Turn | None) -> Difference | None:
    """Find an eviction between the prompt's last chunk and its sample, which is used first (R7)."""
    waits = turn is not None and turn.sampled is None and turn.ending is None
    if not waits or record.reason == "fault":
        return None
    return DeviationKind.EVICT, "the prompt's last chunk was evicted unsampled (R7)"
