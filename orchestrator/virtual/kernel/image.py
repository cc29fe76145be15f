"""How reports name an app's executable: its LC_UUID and its path on the phone."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from uuid import NAMESPACE_URL, UUID, uuid5

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.virtual.kernel.values import InstalledApp

CRASH_FOLDER_ON_PHONE: Final = "/private/var/mobile/Library/Logs/CrashReporter"


def lc_uuid(executable: Path) -> str:
    """Return the UUID of an executable, lower-case with dashes.

    A host executable has no LC_UUID: the first 16 bytes of its SHA-256 stand for it. The same
    build has the same UUID on every phone.

    Raises:
        OSError: If the file cannot be read.
    """
    status = executable.stat()
    return _uuid_of(executable, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _uuid_of(executable: Path, _modified_ns: int, _size_bytes: int) -> str:
    return str(UUID(bytes=hashlib.sha256(executable.read_bytes()).digest()[:16]))


def bundle_on_phone(app: InstalledApp, udid: str) -> str:
    """Return where the .app folder would lie on the phone."""
    bundle = str(uuid5(NAMESPACE_URL, f"{udid}/{app.bundle_id}")).upper()
    return f"/private/var/containers/Bundle/Application/{bundle}/{app.name}.app"


def path_on_phone(app: InstalledApp, udid: str) -> str:
    """Return where the executable would lie on the phone."""
    return f"{bundle_on_phone(app, udid)}/{app.name}"
