"""Where a running farm keeps its sockets, for the farm and for those who look for it.

Short and the same everywhere: a socket path holds 103 bytes on macOS, whose own temporary folder
takes 60 of them. Only the user who serves can enter what is made there.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

SOCKETS_ROOT: Final = "/tmp"  # noqa: S108
SOCKETS_PREFIX: Final = "vp-"
CONTROL_NAME: Final = "control.sock"
STATE_PREFIX: Final = "virtual-phones-"

_LOCK: Final = "in-use"
_OWNER: Final = re.compile(r"(?:vp|virtual-phones)-([0-9]{1,10})-")


def own_prefix(prefix: str) -> str:
    """Return how the name of a folder of this process begins."""
    return f"{prefix}{os.getpid()}-"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Mark a folder as in use until the block ends, or this process, however it ends."""
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def remove_leftovers() -> None:
    """Remove the folders of this user's farms that were killed; a killed one cannot do it.

    Neither pid nor lock alone would do: another container may have other pids and the same
    folder, and a new farm has its folder a moment before its lock.
    """
    roots = {SOCKETS_ROOT: SOCKETS_PREFIX, tempfile.gettempdir(): STATE_PREFIX}
    for root, prefix in roots.items():
        for folder in Path(root).glob(f"{prefix}*"):
            match = _OWNER.match(folder.name)
            if match and _is_ours(folder) and not _is_alive(int(match[1])) and not _is_held(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    try:
        return folder.lstat().st_uid == os.getuid()
    except OSError:
        return False


def _is_held(folder: Path) -> bool:
    try:
        with (folder / _LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False  # it was killed before it had one
    except OSError:
        return True
    return False


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
