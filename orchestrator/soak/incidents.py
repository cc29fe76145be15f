"""Losses that belong together: several phones gone within seconds are one hub, not bad phones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

HUB_WINDOW_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Loss:
    """A phone went away in the middle of its session."""

    udid: str
    alias: str
    at_s: float  # wall clock


def hub_incidents(losses: Iterable[Loss], window_s: float = HUB_WINDOW_S) -> list[list[Loss]]:
    """Return groups of at least two phones that were lost within a window: pure.

    A group goes on while the next loss comes within the window of its first.
    """
    groups: list[list[Loss]] = []
    for loss in sorted(losses, key=lambda loss: loss.at_s):
        if groups and loss.at_s - groups[-1][0].at_s <= window_s:
            groups[-1].append(loss)
        else:
            groups.append([loss])
    return [group for group in groups if len({loss.udid for loss in group}) > 1]
