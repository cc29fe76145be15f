"""The process list of a JetsamEvent as it streams by: only who was killed is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestrator.evidence.fields import Json

# iOS cannot run as many; a list that has more was made to hurt.
MOST_VICTIMS: Final = 16_384

KEPT: Final = ("name", "pid", "uuid", "reason", "rpages", "states", "killDelta")


@dataclass(slots=True)
class ProcessList:
    """Entries of a process list."""

    victims: list[Json] = field(default_factory=list)  # in the order of the file
    victim_count: int = 0
    damaged_entries: int = 0

    def add(self, entry: object) -> None:
        """Take one entry; those without a reason are alive."""
        if not isinstance(entry, dict):
            self.damaged_entries += 1
        elif is_victim(entry):
            self.victim_count += 1
            if len(self.victims) < MOST_VICTIMS:
                self.victims.append({key: entry[key] for key in KEPT if key in entry})


def is_victim(entry: Json) -> bool:
    """Return whether a process was killed: it has a reason, or an empty one and a kill's order."""
    reason = entry.get("reason")
    return reason is not None and (reason != "" or "killDelta" in entry)
