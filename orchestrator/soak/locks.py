"""One run per phone: advisory locks that the system frees when their owner dies.

The key is source address and UDID, so that virtual phones of two runs never collide and one real
phone seen through one usbmuxd always does.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from orchestrator.domain.errors import HeldError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def lock_folder() -> Path:
    """Return where locks live: `FLEET_STATE_DIR`, else the user's state folder."""
    given = os.environ.get("FLEET_STATE_DIR")
    if given:
        return Path(given) / "locks"
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "fleet" / "locks"


@contextmanager
def phones_held(
    keys: Sequence[tuple[str, str, str]], run_id: str, *, folder: Path
) -> Iterator[None]:
    """Hold the phones of a run until the block ends.

    Args:
        keys: Address of the source, UDID and alias of each phone.
        run_id: Told to whoever asks for the same phones.
        folder: Where the lock files are.

    Raises:
        HeldError: If another run holds one of them; then none is held.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        # In one order for everybody, so that two starting runs cannot each hold half.
        for address, udid, alias in sorted(keys, key=lambda key: key[:2]):
            stack.enter_context(_held(_lock_file(folder, address, udid), alias, run_id))
        yield


def _lock_file(folder: Path, address: str, udid: str) -> Path:
    return folder / f"{hashlib.sha256(f'{address} {udid}'.encode()).hexdigest()[:32]}.lock"


@contextmanager
def _held(path: Path, alias: str, run_id: str) -> Iterator[None]:
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise HeldError(
                f"{alias} is held by {_owner(file)}",
                remedy="Wait for that run to end, or stop it",
            ) from error
        file.truncate(0)
        json.dump({"pid": os.getpid(), "run_id": run_id}, file)
        file.flush()
        yield


def _owner(file: IO[str]) -> str:
    file.seek(0)
    try:
        owner = json.load(file)
        return f"run {owner['run_id']}, process {owner['pid']}"
    except (ValueError, KeyError, TypeError):
        return "another run"
