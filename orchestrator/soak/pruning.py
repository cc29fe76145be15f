"""Which old runs may be deleted: pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

SECONDS_PER_DAY: Final = 86400.0


@dataclass(frozen=True, slots=True)
class OldRun:
    """A run directory, and what speaks for keeping it."""

    folder: Path
    run_id: str
    started_s: float
    ended: bool
    size_bytes: int


@dataclass(frozen=True, slots=True)
class KeepRule:
    """What is never deleted."""

    older_than_s: float
    newest: int  # so many runs stay, whatever their age
    signed: Collection[str]  # ids of runs that a sign-off rests on
    baselines: Collection[str]  # ids of runs that later ones are held against


def prunable(runs: Sequence[OldRun], rule: KeepRule, now_s: float) -> list[OldRun]:
    """Return the runs that may go, oldest first.

    A run that has not ended stays: it runs, or `fleet resume` goes on with it.
    """
    by_age = sorted(runs, key=lambda run: run.started_s)
    candidates = by_age[: len(by_age) - rule.newest] if rule.newest else by_age
    kept = {*rule.signed, *rule.baselines}
    return [
        run
        for run in candidates
        if run.ended and run.run_id not in kept and now_s - run.started_s > rule.older_than_s
    ]
