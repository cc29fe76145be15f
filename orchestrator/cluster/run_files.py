"""The files of a run directory as its host shows them to the coordinator: what, and which bytes."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from orchestrator.cluster.documents import FileState
from orchestrator.domain.errors import RunDirectoryError
from orchestrator.runlog.layout import RunPaths
from orchestrator.runlog.manifest import evidence_files

if TYPE_CHECKING:
    from pathlib import Path

CHUNK_BYTES: Final = 1 << 20


def listing(root: Path) -> list[FileState]:
    """Return the evidence of a run and its manifest; files that go meanwhile are left out."""
    manifest = RunPaths(root).manifest
    found = []
    for path in [*evidence_files(root), *([manifest] if manifest.exists() else [])]:
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        name = path.relative_to(root).as_posix()
        found.append(FileState(name, status.st_size, status.st_mtime_ns))
    return found


def read_chunk(root: Path, name: str, offset: int) -> bytes:
    """Return up to 1 MiB of a file, empty at its end.

    Raises:
        RunDirectoryError: If the name leads out of the run directory, or cannot be read.
    """
    path = inside(root, name)
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(CHUNK_BYTES)
    except OSError as error:
        raise RunDirectoryError(f"{name}: {error.strerror or error}") from error


def inside(root: Path, name: str) -> Path:
    """Return a file of a folder by a name that another host sent.

    Raises:
        RunDirectoryError: If the name, or a link on its way, leads elsewhere.
    """
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        raise RunDirectoryError(f"{name!r} is no file of a run directory")
    path = root.joinpath(*parts)
    if not path.resolve().is_relative_to(root.resolve()):
        raise RunDirectoryError(f"{name!r} leads out of the run directory")
    return path
