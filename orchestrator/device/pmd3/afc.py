"""Files on a phone over AFC: chunked, and with every name taken for hostile."""

from __future__ import annotations

import hashlib
import posixpath
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
from pymobiledevice3.exceptions import AfcFileNotFoundError

from orchestrator.device.facts import RemoteFile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from pymobiledevice3.services.afc import AfcService

CHUNK_BYTES: Final = 1024**2
MAX_DEPTH: Final = 8
MAX_ENTRIES: Final = 20_000  # of one walk; a phone that lists more is broken or hostile


class TreeTooLargeError(Exception):
    """A folder on the phone has more entries than any healthy one."""

    def __init__(self, path: str) -> None:
        super().__init__(f"more than {MAX_ENTRIES} entries below {path!r}")


def container_path(path: str) -> str:
    """Return a path below the container's root; `..` cannot leave it."""
    return posixpath.normpath(f"/{path}")


@asynccontextmanager
async def closing(afc: AfcService) -> AsyncIterator[AfcService]:
    """Close an AFC connection also when the body is cancelled."""
    try:
        yield afc
    finally:
        with anyio.CancelScope(shield=True):
            await afc.close()


async def entry(afc: AfcService, path: str) -> RemoteFile | None:
    """Return one path's entry; None for what is neither file nor folder, such as a link."""
    status: dict[str, Any] = await afc.stat(path)
    kind = status["st_ifmt"]
    if kind not in ("S_IFREG", "S_IFDIR"):
        return None
    size_bytes, mtime_s = max(0, int(status["st_size"])), status["st_mtime"].timestamp()
    return RemoteFile(path, size_bytes, mtime_s, kind == "S_IFDIR")


async def entries(afc: AfcService, folder: str) -> list[RemoteFile]:
    """Return a folder's files and folders; what vanishes meanwhile is left out."""
    found: list[RemoteFile] = []
    names = await afc.listdir(folder)
    if len(names) > MAX_ENTRIES:
        raise TreeTooLargeError(folder)
    for name in names:
        if name in ("", ".", "..") or "/" in name:
            continue
        try:
            item = await entry(afc, posixpath.join(folder, name))
        except AfcFileNotFoundError:
            continue
        if item is not None:
            found.append(item)
    return found


async def walk(afc: AfcService, root: str) -> list[RemoteFile]:
    """Return all files below a folder, links not followed, down to `MAX_DEPTH`.

    Raises:
        TreeTooLargeError: If there are more than `MAX_ENTRIES`.
    """
    files: list[RemoteFile] = []
    folders = [(root, 0)]
    while folders:
        folder, depth = folders.pop()
        for item in await entries(afc, folder):
            if not item.is_folder:
                files.append(item)
            elif depth < MAX_DEPTH:
                folders.append((item.path, depth + 1))
            if len(files) + len(folders) > MAX_ENTRIES:
                raise TreeTooLargeError(root)
    return files


async def fetch(afc: AfcService, remote: str, local: Path, *, limit_bytes: int) -> int:
    """Copy one file in chunks; return its size. It appears under its name when it is complete.

    Args:
        afc: Open connection.
        remote: Path on the phone.
        local: Where to put it; its folder is made.
        limit_bytes: No more than this is read, however large the phone says the file is.
    """
    local.parent.mkdir(parents=True, exist_ok=True)
    draft = local.with_name(f".{local.name[:100]}.part")
    handle = await afc.fopen(remote, "r")
    try:
        size_bytes = await _copied(afc, handle, draft, limit_bytes)
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(1):
            await afc.fclose(handle)
    draft.replace(local)
    return size_bytes


async def _copied(afc: AfcService, handle: int, draft: Path, limit_bytes: int) -> int:
    size_bytes = 0
    async with await anyio.open_file(draft, "wb") as file:
        while size_bytes < limit_bytes:
            chunk = await afc.fread(handle, min(CHUNK_BYTES, limit_bytes - size_bytes))
            if not chunk:
                break
            await file.write(chunk)
            size_bytes += len(chunk)
    return size_bytes


async def store(
    afc: AfcService,
    source: bytes | Path,
    remote: str,
    on_bytes: Callable[[int], None] | None = None,
) -> None:
    """Write a file, or a local folder with everything below it; missing folders are made."""
    if isinstance(source, Path) and await anyio.Path(source).is_dir():
        for path in await anyio.to_thread.run_sync(_files_below, source):
            below = path.relative_to(source).as_posix()
            await store(afc, path, posixpath.join(remote, below), on_bytes)
        return
    await afc.makedirs(posixpath.dirname(remote))
    handle = await afc.fopen(remote, "w")
    try:
        if isinstance(source, bytes):
            await afc.fwrite(handle, source)
        else:
            await _stored(afc, handle, source, on_bytes)
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(1):
            await afc.fclose(handle)


async def extend(
    afc: AfcService,
    source: bytes | Path,
    remote: str,
    from_byte: int,
    on_bytes: Callable[[int], None] | None = None,
) -> None:
    """Append what is behind `from_byte` of a file's content to what the phone has of it."""
    handle = await afc.fopen(remote, "a")
    try:
        if isinstance(source, bytes):
            await afc.fwrite(handle, source[from_byte:])
        else:
            await _stored(afc, handle, source, on_bytes, from_byte)
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(1):
            await afc.fclose(handle)


async def digest(afc: AfcService, remote: str) -> str:
    """Return the SHA-256 of a file on the phone, read in chunks and kept nowhere."""
    handle, content = await afc.fopen(remote, "r"), hashlib.sha256()
    try:
        while chunk := await afc.fread(handle, CHUNK_BYTES):
            content.update(chunk)
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(1):
            await afc.fclose(handle)
    return content.hexdigest()


def _files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


async def _stored(
    afc: AfcService,
    handle: int,
    source: Path,
    on_bytes: Callable[[int], None] | None,
    from_byte: int = 0,
) -> None:
    async with await anyio.open_file(source, "rb") as file:
        await file.seek(from_byte)
        while chunk := await file.read(CHUNK_BYTES):
            await afc.fwrite(handle, chunk)
            if on_bytes is not None:
                on_bytes(len(chunk))
