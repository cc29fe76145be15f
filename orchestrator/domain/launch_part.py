"""A soak over several launches of the app: which part of it each launch does. Pure.

The app knows nothing of the whole: every `start` asks for one part (docs/protocol.md 2.2). Token
indices count from each launch's first sample, so each part has the scenario's events again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_RELAUNCHES: Final = 16


@dataclass(frozen=True, slots=True)
class LaunchPart:
    """What one launch is asked for."""

    duration_s: float  # inference time
    stop_after_tokens: int | None


def launch_part(
    duration_s: float, stop_after_tokens: int | None, relaunches: int, number: int
) -> LaunchPart:
    """Return the part of launch `number`: equal times, and tokens that add up exactly.

    Args:
        duration_s: Of the whole soak.
        stop_after_tokens: Of the whole soak, None for no end by tokens.
        relaunches: Launches after the first.
        number: From 1; later ones than there are get the last one's part.
    """
    launches = relaunches + 1
    tokens = None
    if stop_after_tokens is not None:
        each, rest = divmod(stop_after_tokens, launches)
        tokens = each + (number <= rest)
    return LaunchPart(duration_s / launches, tokens)


def relaunches_of(scenario: Mapping[str, object]) -> int:
    """Return how often a plan's scenario launches the app again; 0 where it says nothing."""
    match scenario.get("relaunches"):
        case {"count": int(count)} if 0 < count <= MOST_RELAUNCHES:
            return count
        case _:
            return 0


def scenario_for(scenario: Mapping[str, object], number: int) -> dict[str, object]:
    """Return what `start` sends to launch `number` of a plan's scenario."""
    asked = {name: value for name, value in scenario.items() if name != "relaunches"}
    relaunches = relaunches_of(scenario)
    match scenario:
        case {"duration_s": int() | float() as duration_s} if relaunches:
            stop = scenario.get("stop_after_tokens")
            tokens = stop if isinstance(stop, int) else None
            part = launch_part(float(duration_s), tokens, relaunches, number)
            asked |= {"duration_s": part.duration_s, "stop_after_tokens": part.stop_after_tokens}
        case _:
            pass
    return asked
