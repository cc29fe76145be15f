"""The live view of a run on this process's terminal, or lines where there is none."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Protocol, TextIO

from orchestrator.domain.errors import FleetError
from orchestrator.live.cleaning import printable
from orchestrator.live.follower import RunFollower
from orchestrator.live.lines import Span, within
from orchestrator.live.plain import PlainLog
from orchestrator.live.screen import Screen, is_wanted
from orchestrator.live.table import run_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from orchestrator.live.state import RunLive
    from orchestrator.runlog.documents import RunDocument
    from orchestrator.runlog.layout import RunPaths

LOOK_EVERY_S: Final = 0.5
JOIN_LIMIT_S: Final = 5.0


class View(Protocol):
    """Shows a run as it is now."""

    def show(self, run: RunLive) -> None:
        """Show it."""
        ...


class TableView:
    """Draws the table over itself."""

    def __init__(self, stream: TextIO) -> None:
        self._screen = Screen(stream)

    def show(self, run: RunLive) -> None:
        """Draw it, where something changed."""
        self._screen.draw(run_lines(run, self._screen.terminal()))


class LogView:
    """Prints what is new."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._log = stream, PlainLog()

    def show(self, run: RunLive) -> None:
        """Print it, line by line."""
        for line in self._log.lines(run):
            print(line, file=self._stream, flush=True)


def view_on(stream: TextIO) -> View:
    """Return the view that fits where it is shown."""
    return TableView(stream) if is_wanted(stream, os.environ) else LogView(stream)


@contextmanager
def shown(paths: RunPaths) -> Iterator[None]:
    """Show a run of this process on stderr while it lasts; a view that fails costs no run.

    A thread of its own draws: reading many phones' records must not hold up their sessions.
    """
    if _is_gone(sys.stderr):
        yield
        return
    follower, view = RunFollower(paths), view_on(sys.stderr)
    over = threading.Event()
    thread = threading.Thread(target=_draw, args=(follower, view, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(JOIN_LIMIT_S)
        if not thread.is_alive():  # else nobody reads stderr: the run does not wait for that
            with suppress(FleetError, OSError, ValueError):
                view.show(follower.look(time.time()))


def _is_gone(stream: TextIO | None) -> bool:
    """Return whether a standard stream was closed; Python has None for one that never was open."""
    return stream is None or stream.closed


def _draw(follower: RunFollower, view: View, over: threading.Event) -> None:
    # ValueError: stderr was closed.
    with suppress(FleetError, OSError, ValueError):
        while not over.wait(LOOK_EVERY_S):
            view.show(follower.look(time.time()))


def watch_run(paths: RunPaths, every_s: float, owner_lives: Callable[[RunDocument], bool]) -> None:
    """Show a run on stdout until it is over.

    Raises:
        RunDirectoryError: If it is no run directory.
    """
    follower, view = RunFollower(paths, owner_lives), view_on(sys.stdout)
    while True:
        run = follower.look(time.time())
        view.show(run)
        if run.state != "running" and not run.unread_bytes:
            return
        if not run.unread_bytes:
            time.sleep(every_s)


class BuildLine:
    """Takes a compiler's output: one line that changes on a terminal, else all of it.

    A compiler may be silent for minutes: on a terminal a thread keeps the seconds going.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._screen = Screen(stream) if is_wanted(stream, os.environ) else None
        self._began_s = time.monotonic()
        self._latest: str | None = None  # nothing is shown before there is something to build
        self._over = threading.Event()
        self._drawing = threading.Lock()
        if self._screen is not None:
            threading.Thread(target=self._tick, daemon=True).start()

    def write(self, text: str, /) -> None:
        """Show the latest line; an error's text comes with the error, from the log."""
        if self._screen is None:
            self._stream.write(text)
            return
        self._latest = printable(text)
        self._draw(self._screen)

    def done(self) -> None:
        """Take the line away."""
        self._over.set()
        if self._screen is not None:
            with self._drawing:
                self._screen.clear()

    def _tick(self) -> None:
        while self._screen is not None and not self._over.wait(LOOK_EVERY_S):
            with suppress(OSError, ValueError):  # the terminal is gone
                self._draw(self._screen)

    def _draw(self, screen: Screen) -> None:
        with self._drawing:
            if self._latest is None or self._over.is_set():
                return
            spent_s = time.monotonic() - self._began_s
            words = [Span("building the app ", "head"), Span(f"{spent_s:.0f} s  {self._latest}")]
            screen.draw([within(words, screen.terminal().width - 1)])
