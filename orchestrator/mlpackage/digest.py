"""The digest of a package: what names it in telemetry and in a phone's container."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_READ_BYTES: Final = 4 * 1024**2


def folder_digest(folder: Path) -> str:
    """Return the SHA-256 of a folder's files, 64 hex digits, whatever its own name and times.

    Over all files below it, by relative path: the path, a zero byte, the size in decimal, a zero
    byte, and the content.

    Raises:
        OSError: If a file cannot be read.
    """
    digest = hashlib.sha256()
    for file in files_of(folder):
        size_bytes = file.stat().st_size
        name = file.relative_to(folder).as_posix()
        digest.update(f"{name}\0{size_bytes}\0".encode())
        with file.open("rb") as stream:
            while block := stream.read(_READ_BYTES):
                digest.update(block)
    return digest.hexdigest()


def files_of(folder: Path) -> list[Path]:
    """Return all files below a folder, sorted by their path in it."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return sorted(files, key=lambda file: file.relative_to(folder).as_posix())
