"""What a lab remembers of its phones: lab errors in a row, quarantine, the iOS build last seen.

One private file, changed under a lock by every run of this user.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.domain.errors import UsageError
from orchestrator.soak.state_folder import private_folder, state_folder, write_private

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS_PER_HOUR: Final = 3600.0


class Quarantine(msgspec.Struct, frozen=True):
    """Why a phone is out of the lab, and until when."""

    reason: str
    since_s: float  # wall clock
    until_s: float
    automatic: bool

    def holds(self, now_s: float) -> bool:
        """Return whether it is not over yet."""
        return now_s < self.until_s


class PhoneNote(msgspec.Struct, frozen=True):
    """What is remembered of one phone."""

    udid: str
    alias: str
    lab_errors: int = 0  # sessions in a row that the lab ended
    build: str | None = None  # of iOS, when a session last began
    quarantine: Quarantine | None = None


class _Book(msgspec.Struct):
    phones: dict[str, PhoneNote] = {}


@dataclass(frozen=True, slots=True)
class QuarantinePolicy:
    """When a phone is taken out by itself."""

    after_lab_errors: int = 3
    for_hours: float = 12.0


def after_session(
    note: PhoneNote, lab_error: str | None, policy: QuarantinePolicy, now_s: float
) -> PhoneNote:
    """Return the note after a session: pure.

    Args:
        note: Before it.
        lab_error: What the lab did wrong; None if the session says something of the product.
        policy: When it is enough.
        now_s: Wall clock.
    """
    if lab_error is None:
        return msgspec.structs.replace(note, lab_errors=0)
    count = note.lab_errors + 1
    if count < policy.after_lab_errors:
        return msgspec.structs.replace(note, lab_errors=count)
    quarantine = Quarantine(
        reason=f"{count} lab errors in a row, the last: {lab_error}",
        since_s=now_s,
        until_s=now_s + policy.for_hours * SECONDS_PER_HOUR,
        automatic=True,
    )
    return msgspec.structs.replace(note, lab_errors=0, quarantine=quarantine)


class Ledger:
    """The file of notes.

    Args:
        folder: Where it is; `lab` in the state folder by default.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or state_folder() / "lab"
        self._path = self._folder / "phones.json"

    def notes(self) -> list[PhoneNote]:
        """Return all notes, by alias.

        Raises:
            UsageError: If the file is damaged.
        """
        return sorted(self._read().phones.values(), key=lambda note: note.alias)

    def quarantined(self, now_s: float) -> dict[str, Quarantine]:
        """Return the quarantines that hold, by UDID."""
        return {
            note.udid: note.quarantine
            for note in self.notes()
            if note.quarantine is not None and note.quarantine.holds(now_s)
        }

    def build_of(self, udid: str) -> str | None:
        """Return the iOS build with which a phone's last session began."""
        note = self._read().phones.get(udid)
        return note.build if note else None

    def put_in(self, udid: str, alias: str, quarantine: Quarantine) -> None:
        """Take a phone out of the lab."""
        with self._changed(udid, alias) as change:
            change.note = msgspec.structs.replace(change.note, quarantine=quarantine)

    def take_out(self, udid: str, alias: str) -> None:
        """Give a phone back to the lab, with a clean sheet."""
        with self._changed(udid, alias) as change:
            change.note = msgspec.structs.replace(change.note, lab_errors=0, quarantine=None)

    def session_ended(
        self,
        udid: str,
        alias: str,
        build: str | None,
        lab_error: str | None,
        policy: QuarantinePolicy,
        now_s: float,
    ) -> Quarantine | None:
        """Note the end of a session; return the quarantine that it led to."""
        with self._changed(udid, alias) as change:
            before = change.note
            change.note = after_session(before, lab_error, policy, now_s)
            if build is not None:
                change.note = msgspec.structs.replace(change.note, build=build)
        after = change.note.quarantine
        return after if after is not before.quarantine else None

    @contextmanager
    def _changed(self, udid: str, alias: str) -> Iterator[_Change]:
        private_folder(self._folder)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        lock = os.open(self._folder / "phones.lock", flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)  # held for one small file's time
            book = self._read()
            change = _Change(book.phones.get(udid) or PhoneNote(udid, alias))
            yield change
            book.phones[udid] = msgspec.structs.replace(change.note, alias=alias)
            write_private(self._path, book)
        finally:
            os.close(lock)

    def _read(self) -> _Book:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_Book)
        except FileNotFoundError:
            return _Book()
        except (OSError, msgspec.DecodeError) as error:
            raise UsageError(
                f"{self._path} cannot be read: {error}",
                remedy="Delete it: quarantines and counts of lab errors begin anew",
            ) from error


class _Change:
    def __init__(self, note: PhoneNote) -> None:
        self.note = note
