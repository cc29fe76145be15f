"""The event log of a farm: what happened to its phones, in order.

Faults, plugging, memory warnings, kills, reports, states of apps. The same script under the same
seed gives the same events; only their times differ.
"""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TextIO

Fact: TypeAlias = str | int | float | bool | None

KEPT_EVENTS: Final = 10_000  # in memory; a file keeps all


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the log."""

    number: int  # from 1, no gaps
    elapsed_s: float  # since the farm started
    phone: str  # its name; empty for what concerns the farm
    kind: str
    facts: Mapping[str, Fact]

    def as_json(self) -> str:
        """Return the event as one line of JSON."""
        known = {"n": self.number, "t_s": round(self.elapsed_s, 3), "phone": self.phone}
        return json.dumps({**known, "event": self.kind, **self.facts})


class EventLog:
    """Keeps events, hands them on, and writes them to a file if it has one."""

    def __init__(
        self, file: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._file, self._clock = file, clock
        self._started_s = clock()
        self._count = 0
        self._events: deque[Event] = deque(maxlen=KEPT_EVENTS)
        self.listeners: set[Callable[[Event], None]] = set()

    def record(self, phone: str, kind: str, /, **facts: Fact) -> None:
        """Add an event now."""
        self._count += 1
        event = Event(self._count, self._clock() - self._started_s, phone, kind, facts)
        self._events.append(event)
        if self._file is not None:
            self._file.write(f"{event.as_json()}\n")
            self._file.flush()
        for listener in tuple(self.listeners):
            listener(event)

    def since(self, number: int = 0) -> list[Event]:
        """Return the events after a number; the oldest may be gone."""
        return [event for event in self._events if event.number > number]
