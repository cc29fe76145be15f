"""The lines between a keeper and its client: one JSON object each, tagged by `type`."""

from __future__ import annotations

from typing import Final

import msgspec

from orchestrator.device.events import (
    AppExited,
    AppOutput,
    EventsDropped,
    FootprintObserved,
    SessionLost,
    WarningNoticed,
)
from orchestrator.domain.errors import DeadlineExceededError, DeviceError
from orchestrator.domain.outcome import Cause

MAX_LINE_BYTES: Final = 4 * 1024**2


class Open(msgspec.Struct, frozen=True, tag="open"):
    """Open the developer session, or confirm that it is open."""

    id: int
    limit_s: float


class Launch(msgspec.Struct, frozen=True, tag="launch"):
    """Start the app; the result is its pid."""

    id: int
    limit_s: float
    bundle_id: str
    environment: dict[str, str]
    arguments: list[str]


class Kill(msgspec.Struct, frozen=True, tag="kill"):
    """Send SIGKILL."""

    id: int
    limit_s: float
    pid: int


class IsRunning(msgspec.Struct, frozen=True, tag="is_running"):
    """Ask whether a pid is alive; the result is a bool."""

    id: int
    limit_s: float
    pid: int


class PhysicalMemory(msgspec.Struct, frozen=True, tag="physical_memory"):
    """Ask for `physMemSize`; the result is bytes."""

    id: int
    limit_s: float


class BootSession(msgspec.Struct, frozen=True, tag="boot_session"):
    """Ask which boot the phone is in; the result is a UUID as text, or nothing."""

    id: int
    limit_s: float


class Observe(msgspec.Struct, frozen=True, tag="observe"):
    """Start footprint events for a pid."""

    id: int
    limit_s: float
    pid: int
    interval_ms: int


class Close(msgspec.Struct, frozen=True, tag="close"):
    """Kill the app, end the session and the keeper."""

    id: int
    limit_s: float


class Attached(msgspec.Struct, frozen=True, tag="attached"):
    """First line of a keeper to its client."""

    keeper_pid: int
    app_pid: int | None


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """First and only line to a client that cannot be served."""

    reason: str


class Result(msgspec.Struct, frozen=True, tag="result"):
    """A request went well."""

    id: int
    value: int | str | None = None


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """A request failed; the fields are those of `DeviceError`."""

    id: int
    layer: str
    phase: str
    facts: str
    cause: Cause
    remedy: str
    limit_s: float | None  # set for a deadline that passed

    @classmethod
    def of(cls, id: int, error: DeviceError) -> Failed:  # noqa: A002 - the field's name
        """Return the line for an error."""
        limit_s = error.limit_s if isinstance(error, DeadlineExceededError) else None
        return cls(id, error.layer, error.phase, error.facts, error.cause, error.remedy, limit_s)

    def error(self, alias: str) -> DeviceError:
        """Return the error that the keeper saw."""
        if self.limit_s is not None:
            return DeadlineExceededError(
                alias, self.layer, self.phase, self.limit_s, remedy=self.remedy
            )
        return DeviceError(
            alias, self.layer, self.phase, self.facts, cause=self.cause, remedy=self.remedy
        )


Request = Open | Launch | Kill | IsRunning | PhysicalMemory | BootSession | Observe | Close
FromKeeper = (
    Attached
    | Refused
    | Result
    | Failed
    | AppOutput
    | AppExited
    | FootprintObserved
    | WarningNoticed
    | SessionLost
    | EventsDropped
)

_ENCODER: Final = msgspec.json.Encoder()
_REQUESTS: Final = msgspec.json.Decoder(Request)
_FROM_KEEPER: Final = msgspec.json.Decoder(FromKeeper)


def encode(message: Request | FromKeeper) -> bytes:
    """Return one line, its newline included."""
    return _ENCODER.encode(message) + b"\n"


def decode_request(line: bytes) -> Request:
    """Return what a client sent.

    Raises:
        msgspec.DecodeError: If the line is not a request.
    """
    return _REQUESTS.decode(line)


def decode_from_keeper(line: bytes) -> FromKeeper:
    """Return what a keeper sent.

    Raises:
        msgspec.DecodeError: If the line is not a reply or an event.
    """
    return _FROM_KEEPER.decode(line)
