"""A run's temporary folder; those of killed runs are swept when the next one starts."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME: Final = re.compile(r"fleet-work-(\d+)-\w+")


@contextmanager
def work_folder(root: Path | None = None) -> Iterator[Path]:
    """Make a folder that is gone when the block ends."""
    root = root or Path(tempfile.gettempdir())
    _sweep(root)
    folder = Path(tempfile.mkdtemp(prefix=f"fleet-work-{os.getpid()}-", dir=root))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(root: Path) -> None:
    for folder in root.iterdir():
        match = _NAME.fullmatch(folder.name)
        if match and _is_mine(folder) and not _alive(int(match[1])):
            shutil.rmtree(folder, ignore_errors=True)


def _is_mine(folder: Path) -> bool:
    # The folder for temporary files is shared: a link, or somebody else's folder, is left alone.
    try:
        status = folder.lstat()
    except FileNotFoundError:  # another run ended, or swept it, in between
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
