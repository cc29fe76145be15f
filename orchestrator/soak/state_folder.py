"""Where `fleet` keeps what outlives a process and is no evidence: private to the user.

Tokens of running apps lie here, so folders are 0700 and files 0600 from their first byte on.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.domain.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

STATE_ENVIRONMENT: Final = "FLEET_STATE_DIR"


def state_folder() -> Path:
    """Return `FLEET_STATE_DIR`, else `fleet` in the user's state folder."""
    given = os.environ.get(STATE_ENVIRONMENT)
    if given:
        return Path(given)
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "fleet"


def private_folder(folder: Path) -> Path:
    """Make a folder that only this user can enter, and return it.

    Raises:
        UsageError: If it is somebody else's, or a link, or others can enter it.
    """
    for part in reversed(list(_missing(folder))):
        part.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise UsageError(f"{folder} is not a folder of this user")
    if status.st_mode & 0o077:
        raise UsageError(f"{folder} is open to other users", remedy=f"Run `chmod 700 {folder}`")
    return folder


def _missing(folder: Path) -> Iterator[Path]:
    while not folder.exists():
        yield folder
        folder = folder.parent


def write_private(path: Path, document: msgspec.Struct) -> None:
    """Replace a whole file that nobody else may read, not even for a moment."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
        file.write(msgspec.json.encode(document))
    temporary.replace(path)
