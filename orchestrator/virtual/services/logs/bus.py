"""Carries log lines from the kernel to the clients that follow the log."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.kernel import LogLine

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_WAITING_LINES: Final = 10_000


class LogBus:
    """Hands each line to every subscription. Call it from the event loop's thread."""

    def __init__(self) -> None:
        self._subscriptions: set[LogSubscription] = set()

    def publish(self, line: LogLine) -> None:
        """Give a line to everyone who follows the log; nobody waits for a slow reader."""
        for subscription in self._subscriptions:
            subscription.offer(line)

    def subscribe(self, wanted: Callable[[LogLine], bool]) -> LogSubscription:
        """Return a subscription to the lines that are wanted; use it in a `with` block."""
        return LogSubscription(self._subscriptions, wanted)


class LogSubscription:
    """The lines of one reader. A reader that is too slow loses new lines and is told how many."""

    def __init__(
        self, subscriptions: set[LogSubscription], wanted: Callable[[LogLine], bool]
    ) -> None:
        self._subscriptions, self._wanted = subscriptions, wanted
        self._lines: deque[LogLine] = deque()
        self._lost = 0
        self._arrived = asyncio.Event()

    def __enter__(self) -> LogSubscription:
        self._subscriptions.add(self)
        return self

    def __exit__(self, *_exception: object) -> None:
        self._subscriptions.discard(self)

    def offer(self, line: LogLine) -> None:
        """Take a line if it is wanted and there is room."""
        if not self._wanted(line):
            return
        if len(self._lines) >= MAX_WAITING_LINES:
            self._lost += 1
            return
        self._lines.append(line)
        self._arrived.set()

    async def next(self) -> LogLine:
        """Return the next line; after a loss, first one that says how many lines were lost."""
        while not self._lines:
            self._arrived.clear()
            await self._arrived.wait()
        if self._lost and len(self._lines) < MAX_WAITING_LINES:
            lost, self._lost = self._lost, 0
            return LogLine(0, "logd", "logd", f"{lost} lines were lost, the reader was too slow")
        return self._lines.popleft()
