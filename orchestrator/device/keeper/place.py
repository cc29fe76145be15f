"""Where a keeper lives on disk: one private folder per phone, so that there can be only one.

The folder's name follows from UDID and usbmux address, hence a later orchestrator finds it again.
The lock in it is the kernel's: it goes when the process goes, however that happens.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

# AF_UNIX paths hold 107 bytes on Linux and 103 on a Mac, hence short names throughout.
MAX_SOCKET_PATH_BYTES: Final = 103


class PlaceError(Exception):
    """The folder cannot be used: not ours, not private, or a path too long."""


class KeeperHeldError(Exception):
    """A keeper has this phone already."""

    def __init__(self, pid: int | None) -> None:
        self.pid = pid
        super().__init__(f"keeper {pid} has the phone" if pid else "another keeper has the phone")


class KeeperRecord(msgspec.Struct, frozen=True):
    """`keeper.json`: what a later orchestrator needs to adopt the session."""

    pid: int
    socket: str
    udid: str
    alias: str
    address: str
    bundle_id: str | None = None
    app_pid: int | None = None


@dataclass(frozen=True, slots=True)
class KeeperPlace:
    """The files of one keeper."""

    folder: Path

    @property
    def socket(self) -> Path:
        """Unix socket of the keeper."""
        return self.folder / "k.sock"

    @property
    def record(self) -> Path:
        """The `KeeperRecord`."""
        return self.folder / "keeper.json"

    @property
    def lock(self) -> Path:
        """Locked while the keeper lives. Never deleted: a lock on a deleted file is none."""
        return self.folder / "lock"

    @property
    def log(self) -> Path:
        """The keeper's stderr."""
        return self.folder / "keeper.log"


def default_root() -> Path:
    """Return the folder that holds this user's keepers."""
    return Path(tempfile.gettempdir()) / f"fleet-keepers-{os.getuid()}"


def place_of(root: Path, udid: str, address: str) -> KeeperPlace:
    """Return the place of a phone's keeper; two virtual phones may share a UDID, not an address."""
    digest = hashlib.sha256(f"{udid}\0{address}".encode()).hexdigest()[:12]
    return KeeperPlace(root / digest)


def claim(place: KeeperPlace) -> int:
    """Make the folder and take its lock; the returned file descriptor holds it.

    Raises:
        PlaceError: If the folder is not private and ours, or its path too long.
        KeeperHeldError: If a keeper lives there.
    """
    if len(os.fsencode(place.socket)) > MAX_SOCKET_PATH_BYTES:
        raise PlaceError(f"{place.socket} is longer than {MAX_SOCKET_PATH_BYTES} bytes")
    for folder in (place.folder.parent, place.folder):
        _make_private(folder)
    descriptor = os.open(place.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        record = read_record(place)
        raise KeeperHeldError(record.pid if record else None) from None
    clear(place)
    return descriptor


def is_held(place: KeeperPlace) -> bool:
    """Return whether a keeper lives there."""
    try:
        descriptor = os.open(place.lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def clear(place: KeeperPlace) -> None:
    """Delete what a keeper leaves, except the lock and its log."""
    for path in (place.socket, place.record):
        with suppress(FileNotFoundError):
            path.unlink()


def write_record(place: KeeperPlace, record: KeeperRecord) -> None:
    """Replace `keeper.json` as a whole."""
    draft = place.record.with_suffix(".new")
    draft.write_bytes(msgspec.json.encode(record))
    draft.replace(place.record)


def read_record(place: KeeperPlace) -> KeeperRecord | None:
    """Return `keeper.json`, or None if there is none that can be read."""
    try:
        return msgspec.json.decode(place.record.read_bytes(), type=KeeperRecord)
    except (OSError, msgspec.DecodeError):
        return None


def living(root: Path) -> list[KeeperRecord]:
    """Return the records of all keepers that live below `root`."""
    places = [KeeperPlace(path.parent) for path in sorted(root.glob("*/lock"))]
    records = [read_record(place) for place in places if is_held(place)]
    return [record for record in records if record is not None]


def _make_private(folder: Path) -> None:
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
    # In a shared /tmp somebody else may have made it first, or put a link there.
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise PlaceError(f"{folder} is not a folder")
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PlaceError(f"{folder} is not private to this user")
