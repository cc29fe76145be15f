"""What another orchestrator needs to go on with a session whose own one died.

It is kept beside no evidence: the token of a running app is in it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from orchestrator.device.facts import PhoneFacts
from orchestrator.domain.errors import DeviceError
from orchestrator.domain.outcome import Cause
from orchestrator.runlog.documents import LaunchWindow
from orchestrator.soak.state_folder import write_private
from orchestrator.soak.streaming import StreamResult

if TYPE_CHECKING:
    from pathlib import Path


class Stage(StrEnum):
    """How far a session has come: what can still be lost, and what must not be done twice."""

    PREPARING = "preparing"  # nothing runs: begin again
    RUNNING = "running"  # an app may run: find it
    RELAUNCHING = "relaunching"  # the app did its part: launch it for the next one
    COLLECTING = "collecting"  # the app is over: only its evidence is missing
    DONE = "done"


class RememberedError(msgspec.Struct, frozen=True):
    """A lab error, to be raised again by another process."""

    alias: str
    layer: str
    phase: str
    facts: str
    cause: Cause
    remedy: str

    @classmethod
    def of(cls, error: DeviceError) -> RememberedError:
        """Return what is kept of an error."""
        return cls(error.alias, error.layer, error.phase, error.facts, error.cause, error.remedy)

    def error(self) -> DeviceError:
        """Return the error again."""
        return DeviceError(
            self.alias, self.layer, self.phase, self.facts, cause=self.cause, remedy=self.remedy
        )


class SessionState(msgspec.Struct, kw_only=True):
    """One session on its way; its owner changes it and saves it."""

    attempt: int = 1
    launch: int = 1  # of the attempt
    stage: Stage = Stage.PREPARING
    token: str = ""  # of the launch that runs; secret
    started_s: float = 0.0  # wall clock, just before the launch
    pid: int | None = None
    facts: PhoneFacts | None = None  # as the session began
    physical_memory_bytes: int | None = None
    boot_session: str | None = None  # of the phone, at the launch
    boot_before: str | None = None  # at the launch of the attempt before
    known_reports: list[str] = []  # keys of what was on the phone before the launch
    stream: StreamResult = msgspec.field(default_factory=StreamResult)
    windows: list[LaunchWindow] = []
    alive_at_end: bool | None = None
    error: RememberedError | None = None


class SessionJournal:
    """A session's state and the private file that it is kept in, if any.

    Args:
        path: The file; None for phones that die with the run, whose sessions nobody can adopt.
        state: What was read from it.
    """

    def __init__(self, path: Path | None = None, state: SessionState | None = None) -> None:
        self._path = path
        self.resumed = state is not None
        self.state = state or SessionState()

    @classmethod
    def reopened(cls, path: Path) -> SessionJournal:
        """Return what a dead orchestrator left; without a file the session begins."""
        try:
            state = msgspec.json.decode(path.read_bytes(), type=SessionState)
        except (OSError, msgspec.DecodeError):
            state = SessionState()
        return cls(path, state)

    def save(self, stage: Stage | None = None) -> None:
        """Write the state, before the act that makes it necessary."""
        if stage is not None:
            self.state.stage = stage
        if self._path is not None:
            write_private(self._path, self.state)

    def next_launch(self) -> None:
        """Go on with the attempt's next launch; what all launches share is kept."""
        state, done = self.state, self.state.stream
        state.launch, state.pid, state.token = state.launch + 1, None, ""
        state.stream = StreamResult(
            exits=done.exits,
            peak_observed_bytes=done.peak_observed_bytes,
            warnings_noticed=done.warnings_noticed,
        )
        self.save(Stage.RELAUNCHING)

    def next_attempt(self) -> None:
        """Begin anew."""
        self.resumed = False
        self.state = SessionState(
            attempt=self.state.attempt + 1, boot_before=self.state.boot_session
        )
        self.save()
