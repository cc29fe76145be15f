"""One run per phone: advisory locks that the system frees when their owner dies.

A real phone is one phone, whoever reaches it through whatever usbmuxd: its key is its UDID. Virtual
phones of two farms may share UDIDs: their key has the address too. The folder is shared by all
users of the host, and what is in it says who holds what; nothing in it is secret.
"""

from __future__ import annotations

import fcntl
import getpass
import hashlib
import os
import stat
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.domain.errors import HeldError
from orchestrator.soak.state_folder import STATE_ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SHARED_FOLDER: Final = Path("/var/tmp/fleet-locks")  # noqa: S108 - shared on purpose, see _open
LOCK_ENVIRONMENT: Final = "FLEET_LOCK_DIR"  # one for all users of the host
_MOST_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class LockKey:
    """What two runs on the same phone have equal, and its name for people."""

    phone: str  # UDID, with the source's address for virtual phones
    alias: str


class Owner(msgspec.Struct, frozen=True):
    """Who holds a phone; written by the holder, hostile to everybody else."""

    user: str
    pid: int
    run_id: str
    alias: str
    since_s: float  # wall clock
    expires_s: float  # when the run is over by its own limits

    def describe(self) -> str:
        """Return the owner in a few words."""
        return f"run {self.run_id} of {self.user}, process {self.pid}"


@dataclass(frozen=True, slots=True)
class Claim:
    """What a run says of itself when it takes phones."""

    run_id: str
    lasts_s: float

    def owner(self, alias: str) -> Owner:
        """Return the words for one phone's lock."""
        now_s = time.time()
        return Owner(
            getpass.getuser(), os.getpid(), self.run_id, alias, now_s, now_s + self.lasts_s
        )


def lock_folder() -> Path:
    """Return where locks live: `FLEET_LOCK_DIR`, else below `FLEET_STATE_DIR`, else for all."""
    given = os.environ.get(LOCK_ENVIRONMENT)
    if given:
        return Path(given)
    state = os.environ.get(STATE_ENVIRONMENT)
    return Path(state) / "locks" if state else SHARED_FOLDER


@contextmanager
def phones_held(keys: Sequence[LockKey], claim: Claim, *, folder: Path) -> Iterator[None]:
    """Hold the phones of a run until the block ends.

    Args:
        keys: The phones.
        claim: Told to whoever asks for the same phones.
        folder: Where the lock files are.

    Raises:
        HeldError: If another run holds one of them; then none is held.
    """
    _make_folder(folder)
    with ExitStack() as stack:
        # In one order for everybody, so that two starting runs cannot each hold half.
        for key in sorted(keys, key=lambda key: key.phone):
            stack.enter_context(_held(_lock_file(folder, key), claim.owner(key.alias)))
        yield


def holders(folder: Path) -> list[Owner]:
    """Return who holds phones now, longest first."""
    found = []
    for path in folder.glob("*.lock"):
        owner = _holder_of(path)
        if owner is not None:
            found.append(owner)
    return sorted(found, key=lambda owner: owner.since_s)


def holder_of(key: LockKey, folder: Path) -> Owner | None:
    """Return who holds a phone now."""
    return _holder_of(_lock_file(folder, key))


def _holder_of(path: Path) -> Owner | None:
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _words(descriptor) or Owner("somebody", 0, "unknown", path.stem, 0.0, 0.0)
        finally:
            os.close(descriptor)
    return None


def _lock_file(folder: Path, key: LockKey) -> Path:
    return folder / f"{hashlib.sha256(key.phone.encode()).hexdigest()[:32]}.lock"


def _make_folder(folder: Path) -> None:
    if folder.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    if folder == SHARED_FOLDER:
        folder.chmod(0o1777)  # as /tmp: everybody may lock, nobody may delete another's file


@contextmanager
def _held(path: Path, owner: Owner) -> Iterator[None]:
    descriptor = _open(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = _words(descriptor)
            raise HeldError(
                f"{owner.alias} is held by {holder.describe() if holder else 'another run'}",
                remedy="Wait for that run to end (`--wait`), "
                f"or stop it (`fleet unlock {owner.alias} --kick`)",
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, msgspec.json.encode(owner), 0)
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    # A file of another user in a sticky folder must not be opened with O_CREAT (Linux
    # fs.protected_regular); it is never deleted, for a lock on a deleted file is none.
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with suppress(FileNotFoundError):
            return os.open(path, flags)
        descriptor = os.open(path, flags | os.O_CREAT, 0o666)
        status = os.fstat(descriptor)
        if status.st_uid == os.getuid() and stat.S_IMODE(status.st_mode) != 0o666:
            os.fchmod(descriptor, 0o666)  # whatever the umask: other users lock it too
    except OSError as error:
        raise HeldError(f"the lock {path} cannot be opened: {error.strerror}") from error
    return descriptor


def _words(descriptor: int) -> Owner | None:
    try:
        return msgspec.json.decode(os.pread(descriptor, _MOST_BYTES, 0), type=Owner)
    except (OSError, msgspec.DecodeError):
        return None
