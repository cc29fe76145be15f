"""What an agent keeps of one slice: the order, who carries it out, and how that ended.

    <agent>/runs/<run id>/            the durable run directory
    <agent>/slices/<run id>/          slice.json  process.lock  process.log  ending.json
    <agent>/apps/<sha256>.ipa

The process that carries a slice out holds `process.lock` as long as it lives, so that an agent
which was killed and came back knows whether it still does.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.cluster.documents import ENDED, REFUSED, RUNNING, Slice, SliceState
from orchestrator.domain.errors import FleetError, RunDirectoryError
from orchestrator.runlog.documents import RunDocument
from orchestrator.runlog.files import read_document, write_document
from orchestrator.runlog.layout import RunPaths, safe_name
from orchestrator.soak.state_folder import private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LOG_TAIL_BYTES: Final = 4096


class Ending(msgspec.Struct, frozen=True):
    """`ending.json`: how the process ended, where it could say so."""

    exit_code: int
    error: str = ""


class _Pid(msgspec.Struct, frozen=True):
    pid: int


@dataclass(frozen=True, slots=True)
class SliceFolder:
    """The files of one slice on its host."""

    agent: Path
    run_id: str

    @property
    def root(self) -> Path:
        """The private part."""
        return self.agent / "slices" / safe_name(self.run_id)

    @property
    def run(self) -> RunPaths:
        """The run directory."""
        return RunPaths(self.output / safe_name(self.run_id))

    @property
    def output(self) -> Path:
        """Where run directories go."""
        return self.agent / "runs"

    @property
    def log(self) -> Path:
        """What the process printed."""
        return self.root / "process.log"

    def app(self, sha256: str) -> Path:
        """Return where an app lies, by its content."""
        return self.agent / "apps" / f"{safe_name(sha256)}.ipa"

    def keep(self, order: Slice) -> None:
        """Write the order, before anything is done about it."""
        private_folder(self.root)
        write_document(self.root / "slice.json", order)

    def order(self) -> Slice:
        """Return the order.

        Raises:
            RunDirectoryError: If there is none that can be read.
        """
        return read_document(self.root / "slice.json", Slice)

    def end(self, ending: Ending) -> None:
        """Note how the process ended."""
        write_document(self.root / "ending.json", ending)

    def ending(self) -> Ending | None:
        """Return how the process ended; None while it runs, or where it was killed."""
        try:
            return read_document(self.root / "ending.json", Ending)
        except RunDirectoryError:
            return None

    def forget_ending(self) -> None:
        """Make room for the next process."""
        (self.root / "ending.json").unlink(missing_ok=True)

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Hold the slice until the block ends; yields False where another process does."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self.root / "process.lock", flags, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, msgspec.json.encode(_Pid(os.getpid())), 0)
            yield True
        finally:
            os.close(descriptor)

    def holder(self) -> int | None:
        """Return the pid of the process that carries the slice out, None where none does."""
        try:
            descriptor = os.open(self.root / "process.lock", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _pid(os.pread(descriptor, 64, 0))
        finally:
            os.close(descriptor)
        return None

    def state(self) -> SliceState | None:
        """Return how the slice is, None where its process died and it has to be resumed."""
        if self.holder() is not None:
            return SliceState(state=RUNNING)
        if self.is_over():
            return SliceState(state=ENDED)
        ending = self.ending()
        if ending is not None and not self.run.run.exists():
            return SliceState(state=REFUSED, reason=ending.error, exit_code=ending.exit_code)
        return None

    def is_over(self) -> bool:
        """Return whether the run came to its end, manifest included."""
        try:
            run = read_document(self.run.run, RunDocument)
        except FleetError:
            return False
        return run.ended_s is not None and self.run.manifest.exists()

    def last_words(self) -> str:
        """Return the last line the process printed; empty where it printed none."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - _LOG_TAIL_BYTES))
                lines = file.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        return next((line for line in reversed(lines) if line.strip()), "")


def slice_folders(agent: Path) -> list[SliceFolder]:
    """Return the slices that an agent was ever given."""
    folders = sorted((agent / "slices").glob("*/slice.json"))
    return [SliceFolder(agent, path.parent.name) for path in folders]


def _pid(content: bytes) -> int:
    try:
        return msgspec.json.decode(content, type=_Pid).pid
    except msgspec.DecodeError:
        return 0  # it has the lock and has not said its name yet
