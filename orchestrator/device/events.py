"""What a developer session reports while the app runs.

The classes are also the lines a keeper sends to its client, hence msgspec with a tag.
"""

from __future__ import annotations

import msgspec


class AppOutput(msgspec.Struct, frozen=True, tag="output"):
    """One line of the app's stdout or stderr, without its newline."""

    pid: int
    line: str


class AppExited(msgspec.Struct, frozen=True, tag="exited"):
    """The app is gone. A killed app has a signal and no exit code.

    An exit is never lost: it is repeated to every client that attaches to the keeper.
    """

    pid: int
    exit_code: int | None
    signal: int | None


class FootprintObserved(msgspec.Struct, frozen=True, tag="footprint"):
    """`physFootprint` of the app as the phone's kernel states it."""

    pid: int
    footprint_bytes: int


class WarningNoticed(msgspec.Struct, frozen=True, tag="warning"):
    """The phone told its developer services of a memory warning: a witness beside the app.

    `pid` is None where the notice names no process.
    """

    pid: int | None


class SessionLost(msgspec.Struct, frozen=True, tag="lost"):
    """The developer session broke and stays broken: cable, reboot, or the phone's daemon."""

    reason: str


class EventsDropped(msgspec.Struct, frozen=True, tag="dropped"):
    """Events that found a full buffer, counted since the last such event; never exits."""

    footprints: int
    output_lines: int


SessionEvent = (
    AppOutput | AppExited | FootprintObserved | WarningNoticed | SessionLost | EventsDropped
)
