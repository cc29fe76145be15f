"""Events on their way to the client, and waiting while there is none.

Bounded, with a named policy: of footprints and of output lines the oldest go first, and how many
went is itself an event. Exits and the loss of the session are never dropped.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from orchestrator.device.events import AppOutput, EventsDropped, FootprintObserved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.device.events import SessionEvent

MAX_FOOTPRINTS: Final = 4096  # over an hour at one a second
MAX_OUTPUT_LINES: Final = 4096


class EventBuffer:
    """A queue of events in order."""

    def __init__(
        self, max_footprints: int = MAX_FOOTPRINTS, max_output_lines: int = MAX_OUTPUT_LINES
    ) -> None:
        self._limits: dict[type[SessionEvent], int] = {
            FootprintObserved: max_footprints,
            AppOutput: max_output_lines,
        }
        self._held: dict[type[SessionEvent], int] = dict.fromkeys(self._limits, 0)
        self._dropped: dict[type[SessionEvent], int] = dict.fromkeys(self._limits, 0)
        self._events: deque[SessionEvent] = deque()

    def __len__(self) -> int:
        return len(self._events)

    def __contains__(self, event: SessionEvent) -> bool:
        return event in self._events

    def add(self, event: SessionEvent) -> None:
        """Append one event; a full buffer loses the oldest of its kind."""
        self._events.append(event)
        self._count(event)

    def take(self) -> list[SessionEvent]:
        """Return all events and empty the buffer."""
        events: list[SessionEvent] = []
        while (event := self.pop()) is not None:
            events.append(event)
        return events

    def pop(self) -> SessionEvent | None:
        """Return the next event, or None; drops come first, for they are the oldest."""
        dropped = EventsDropped(self._dropped[FootprintObserved], self._dropped[AppOutput])
        if dropped.footprints or dropped.output_lines:
            self._dropped = dict.fromkeys(self._dropped, 0)
            return dropped
        if not self._events:
            return None
        event = self._events.popleft()
        if type(event) in self._held:
            self._held[type(event)] -= 1
        return event

    def restore(self, events: Sequence[SessionEvent]) -> None:
        """Put back, in front, what was taken and could not be delivered."""
        later = list(self._events)
        self._events = deque()
        self._held = dict.fromkeys(self._held, 0)
        for event in [*events, *later]:
            if isinstance(event, EventsDropped):
                self._dropped[FootprintObserved] += event.footprints
                self._dropped[AppOutput] += event.output_lines
            else:
                self.add(event)

    def _count(self, event: SessionEvent) -> None:
        kind = type(event)
        if kind not in self._limits:
            return
        self._held[kind] += 1
        if self._held[kind] > self._limits[kind]:
            oldest = next(place for place, held in enumerate(self._events) if type(held) is kind)
            del self._events[oldest]
            self._held[kind] -= 1
            self._dropped[kind] += 1
