"""Where a phone's files go on our disk: the phone's paths kept, and never outside the folder.

All names come from the phone and are hostile: `..`, absolute paths, NULs, names that only differ
in case (one file on a Mac's disk), names longer than a file system takes. Pure.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_COMPONENT_BYTES: Final = 120  # file systems take 255 bytes; a mark must still fit
_UNSAFE: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff/\\:*?\"<>|\ud800-\udfff]"
)


def local_paths(device_paths: Sequence[str]) -> dict[str, PurePosixPath]:
    """Return a relative path for each device path: safe, and distinct whatever the case.

    A path that had to be changed carries eight hex digits of the SHA-256 of the original, so that
    the same file goes to the same place at the next pull.
    """
    placed: dict[str, PurePosixPath] = {}
    taken: set[str] = set()
    for device_path in sorted(set(device_paths)):
        path = _safe(device_path)
        if str(path).casefold() in taken:
            path = path.with_name(_marked(path.name, device_path))
        taken.add(str(path).casefold())
        placed[device_path] = path
    return placed


def _safe(device_path: str) -> PurePosixPath:
    parts = [part for part in device_path.split("/") if part] or ["unnamed"]
    safe = [_component(part) for part in parts]
    if safe != parts:
        safe[-1] = _marked(safe[-1], device_path)
    return PurePosixPath(*safe)


def _component(part: str) -> str:
    cleaned = _UNSAFE.sub("_", part)
    # A trailing dot or space is dropped by some file systems.
    cleaned = cleaned.rstrip(". ") or "_"
    return cleaned.encode()[:MAX_COMPONENT_BYTES].decode(errors="ignore") or "_"


def _marked(name: str, device_path: str) -> str:
    digest = hashlib.sha256(device_path.encode(errors="surrogatepass")).hexdigest()[:8]
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}~{digest}{dot}{suffix}" if stem else f"{name}~{digest}"
