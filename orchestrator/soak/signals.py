"""SIGINT and SIGTERM: caught from a moment on, and turned into an orderly end."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator


@contextmanager
def caught_signals() -> Iterator[AsyncIterator[signal.Signals]]:
    """Catch SIGINT and SIGTERM from here on; those that come before anybody listens wait.

    Entered before a run directory is made: a run that has one has a report as well.
    """
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as received:
        yield received


async def stop_at(
    signals: AsyncIterator[signal.Signals], stop: anyio.Event, tell: Callable[[str], None]
) -> None:
    """Set `stop` at the first signal, and tell its name; never returns by itself."""
    async for number in signals:
        if not stop.is_set():
            tell(signal.Signals(number).name)
            stop.set()


async def stop_on_signal(stop: anyio.Event, tell: Callable[[str], None]) -> None:
    """Do the same with the signals that come from now on."""
    with caught_signals() as signals:
        await stop_at(signals, stop, tell)
