"""Where a launch stands between two records: the running turn, and what is to be fed next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.verdict.deviation import DeviationKind


@dataclass(slots=True)
class Feed:
    """Ids that the contract wants prefilled, and how many of them a phone has fed."""

    purpose: str
    ids: list[int]
    blame: DeviationKind  # what a difference in these ids is
    done: int = 0
    blamed: bool = False  # one difference was reported; the rest of this feed stays silent

    @property
    def complete(self) -> bool:
        """Whether nothing is left."""
        return self.done >= len(self.ids)

    def next_chunk(self, width: int) -> list[int]:
        """Return the ids of the next chunk."""
        return self.ids[self.done : self.done + width]


@dataclass(slots=True)
class Turn:
    """The running turn."""

    conversation: int
    number: int
    used_count: int
    limit: int | None
    sampled: int | None = None  # the token that was sampled last and is not fed yet
    generated: int = 0
    ending: str | None = None  # the reason the turn must end with, once it is known
    evictions_since_sample: int = 0
    trim_excused: bool = False  # a missing trim was reported; not again before the next release

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases that a record may name now.

        The eviction after a turn's first sample still counts as prefill where the warning landed
        in the last chunk, and as decode where it came later; records cannot tell the two apart.
        """
        if self.sampled is None:
            return ("prefill",)
        return ("prefill", "decode") if self.generated == 1 else ("decode",)
