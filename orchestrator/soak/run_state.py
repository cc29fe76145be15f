"""A run's private state: what `fleet resume` needs beside the run directory.

It lives from just before the run directory until the report is written.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.runlog.layout import safe_name
from orchestrator.soak.session_state import SessionJournal
from orchestrator.soak.state_folder import private_folder, state_folder, write_private

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.runlog.documents import PlannedPhone

APP_NAME: Final = "app.ipa"


class RunState(msgspec.Struct, frozen=True):
    """What no session of the run knows."""

    run: str  # the run directory, absolute
    usbmux: str | None = None  # what the environment named, where it named one
    until_s: float | None = None  # wall clock: when its window closes


@dataclass(frozen=True, slots=True)
class RunStateFolder:
    """The private files of one run."""

    root: Path

    @classmethod
    def of(cls, run_id: str) -> RunStateFolder:
        """Return the folder of a run, which need not be there."""
        return cls(state_folder() / "runs" / safe_name(run_id))

    @property
    def app(self) -> Path:
        """The app as it was installed; a resumed run installs the same bytes."""
        return self.root / APP_NAME

    def begin(self, state: RunState, ipa: Path) -> None:
        """Make the folder.

        Raises:
            UsageError: If it cannot be made private.
        """
        private_folder(self.root)
        shutil.copyfile(ipa, self.app)
        self.app.chmod(0o600)
        write_private(self.root / "run.json", state)

    def read(self) -> RunState | None:
        """Return the state, None where there is none that can be read."""
        try:
            return msgspec.json.decode((self.root / "run.json").read_bytes(), type=RunState)
        except (OSError, msgspec.DecodeError):
            return None

    def new_session(self, phone: PlannedPhone) -> SessionJournal:
        """Return the journal of a session that begins."""
        return SessionJournal(self._session_file(phone))

    def left_session(self, phone: PlannedPhone) -> SessionJournal:
        """Return the journal of a session that a dead orchestrator left."""
        return SessionJournal.reopened(self._session_file(phone))

    def remove(self) -> None:
        """Delete it: the run is over."""
        shutil.rmtree(self.root, ignore_errors=True)

    def _session_file(self, phone: PlannedPhone) -> Path:
        return self.root / f"{safe_name(phone.directory)}.session.json"
