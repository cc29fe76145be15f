"""Pushes models by content: what is on the phone already is not sent again.

A model lies in a folder named by its digest, so another content is another folder. A marker is
written last: a push that a lost cable cut has none. The next push then goes on with the bytes that
are there, file by file, and reads back what it continued: its digest must be that of the source.
A file that was sent in one piece is held to its size, and to its digest by the app that loads it.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio.to_thread

from orchestrator.device.link import PhoneLink, RemotePathMissingError
from orchestrator.domain.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from orchestrator.device.facts import RemoteFile
    from orchestrator.domain.deadline import Deadline

MODELS: Final = "Documents/models"
MARKER: Final = "complete.json"
_CHUNK_BYTES: Final = 1024**2
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")  # other names are not ours to delete


class PushDamagedError(DeviceError):
    """The phone holds other bytes than it was sent, twice."""

    def __init__(self, alias: str, name: str) -> None:
        super().__init__(
            alias,
            "afc",
            "push",
            f"{name!r} reads back with another digest, also after a second push",
            remedy="Delete the app from the phone, or try another cable and port",
        )


@dataclass(frozen=True, slots=True)
class Payload:
    """A model on its way to a phone."""

    folder: str  # in the container, named by the digest: `Documents/models/<digest>`
    digest: str  # SHA-256 of the content, 64 hex digits
    files: Mapping[str, bytes | Path]  # by path below the folder


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a push did."""

    sent_bytes: int  # 0 where the phone had everything
    resumed: tuple[str, ...] = ()  # files that were continued

    def __bool__(self) -> bool:
        """Whether anything was sent."""
        return self.sent_bytes > 0


async def package_payload(package: Path, digest: str) -> Payload:
    """Return an `.mlpackage` folder as a payload; its own name is kept below the digest."""

    def listed() -> dict[str, bytes | Path]:
        files = (file for file in sorted(package.rglob("*")) if file.is_file())
        return {file.relative_to(package.parent).as_posix(): file for file in files}

    return Payload(f"{MODELS}/{digest}", digest, await anyio.to_thread.run_sync(listed))


async def push_once(
    link: PhoneLink,
    bundle_id: str,
    payload: Payload,
    *,
    deadline: Deadline,
    on_percent: Callable[[float], None] = lambda _: None,
) -> Pushed:
    """Push a model unless the phone has all of it; go on where an earlier push was cut.

    Args:
        link: The phone.
        bundle_id: The app.
        payload: The model.
        deadline: For all of it.
        on_percent: Called with how much of the local files is sent, 0 to 100.

    Returns:
        What was sent.

    Raises:
        PushDamagedError: If a continued file reads back wrong although it was sent again whole.
        DeviceError: If the phone or the app's container cannot be reached.
    """
    wanted = await anyio.to_thread.run_sync(_sizes, payload)
    marker = _marker(payload, wanted)
    below = await _below(link, bundle_id, payload.folder, deadline)
    there = {n: f.size_bytes for n, f in below.items() if n in wanted or n == MARKER}
    if there == wanted | {MARKER: len(marker)}:
        return Pushed(0)
    push = _Push(link, bundle_id, payload, deadline, on_percent, sum(wanted.values()))
    # Without a marker the last push was cut; with one, whoever shortened a file is unknown.
    was_cut = MARKER not in there
    for name, size_bytes in wanted.items():
        held_bytes = there.get(name)
        if held_bytes == size_bytes and not was_cut:
            push.count(size_bytes)
            continue
        await push.file(name, size_bytes, held_bytes if was_cut else None)
    await push.marker(marker)
    return Pushed(push.sent_bytes, tuple(push.resumed))


class _Push:
    """The files of one push, and what was sent of them."""

    def __init__(
        self,
        link: PhoneLink,
        bundle_id: str,
        payload: Payload,
        deadline: Deadline,
        on_percent: Callable[[float], None],
        whole_bytes: int,
    ) -> None:
        self._link, self._bundle_id = link, bundle_id
        self._payload, self._deadline = payload, deadline
        self._on_percent, self._whole_bytes = on_percent, max(1, whole_bytes)
        self._there_bytes = 0
        self.sent_bytes = 0
        self.resumed: list[str] = []

    def count(self, piece_bytes: int) -> None:
        """Count what is there, sent or found; a file that is sent twice counts no further."""
        self._there_bytes = min(self._whole_bytes, self._there_bytes + piece_bytes)
        self._on_percent(100 * self._there_bytes / self._whole_bytes)

    async def file(self, name: str, size_bytes: int, held_bytes: int | None) -> None:
        """Send a file, or the rest of it where the phone holds a beginning."""
        if held_bytes is None or not 0 < held_bytes <= size_bytes:
            await self._send(name, size_bytes, 0)
            return
        self.count(held_bytes)
        if held_bytes < size_bytes:
            await self._send(name, size_bytes, held_bytes)
            self.resumed.append(name)
        if await self._is_whole(name):
            return
        await self._send(name, size_bytes, 0)
        if not await self._is_whole(name):
            raise PushDamagedError(self._link.phone.alias, name)

    async def marker(self, content: bytes) -> None:
        """Write the marker, which says that everything else is there."""
        path = f"{self._payload.folder}/{MARKER}"
        await self._link.push(self._bundle_id, content, path, deadline=self._deadline)
        self.sent_bytes += len(content)

    async def _send(self, name: str, size_bytes: int, from_byte: int) -> None:
        await self._link.push(
            self._bundle_id,
            self._payload.files[name],
            f"{self._payload.folder}/{name}",
            deadline=self._deadline,
            from_byte=from_byte,
            on_bytes=self.count,
        )
        self.sent_bytes += size_bytes - from_byte

    async def _is_whole(self, name: str) -> bool:
        path = f"{self._payload.folder}/{name}"
        theirs = await self._link.digest(self._bundle_id, path, deadline=self._deadline)
        return theirs == await anyio.to_thread.run_sync(_digest, self._payload.files[name])


async def prune_models(
    link: PhoneLink, bundle_id: str, keep: Sequence[str], budget_bytes: int, *, deadline: Deadline
) -> list[str]:
    """Delete models that no run of today needs, the oldest first, until the rest fits.

    Args:
        link: The phone.
        bundle_id: The app.
        keep: Digests that are never deleted; they count all the same.
        budget_bytes: What all models may take together.
        deadline: For all of it.

    Returns:
        The digests that were deleted.
    """
    held: dict[str, tuple[float, int]] = {}  # newest time and bytes by digest
    for path, file in (await _below(link, bundle_id, MODELS, deadline)).items():
        name = path.partition("/")[0]
        if _DIGEST.fullmatch(name):
            newest_s, size_bytes = held.get(name, (0.0, 0))
            held[name] = max(newest_s, file.mtime_s), size_bytes + file.size_bytes
    rows = [(newest_s, name, size_bytes) for name, (newest_s, size_bytes) in held.items()]
    names = prunable(rows, keep, budget_bytes)
    for name in names:
        await link.remove(bundle_id, f"{MODELS}/{name}", deadline=deadline)
    return names


def prunable(
    held: Sequence[tuple[float, str, int]], keep: Sequence[str], budget_bytes: int
) -> list[str]:
    """Return which models go: pure.

    Args:
        held: Of each model its newest time, its digest and its bytes.
        keep: Digests that stay.
        budget_bytes: What all may take together.
    """
    total_bytes = sum(size_bytes for _, _, size_bytes in held)
    going: list[str] = []
    for _, name, size_bytes in sorted(held):
        if total_bytes <= budget_bytes:
            break
        if name not in keep:
            going.append(name)
            total_bytes -= size_bytes
    return going


async def _below(
    link: PhoneLink, bundle_id: str, folder: str, deadline: Deadline
) -> dict[str, RemoteFile]:
    """Return the files below a folder by their path below it; none where it is missing."""
    try:
        found = await link.tree(bundle_id, folder, deadline=deadline)
    except RemotePathMissingError:
        return {}
    return {posixpath.relpath(f"/{file.path.lstrip('/')}", f"/{folder}"): file for file in found}


def _sizes(payload: Payload) -> dict[str, int]:
    return {
        name: len(source) if isinstance(source, bytes) else source.stat().st_size
        for name, source in payload.files.items()
    }


def _digest(source: bytes | Path) -> str:
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest()
    content = hashlib.sha256()
    with Path(source).open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            content.update(chunk)
    return content.hexdigest()


def _marker(payload: Payload, sizes: Mapping[str, int]) -> bytes:
    return json.dumps({"digest": payload.digest, "bytes": sum(sizes.values())}).encode()
