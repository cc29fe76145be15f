"""Pushes models by content: what is already complete in the app's container is not sent again.

A model lies in a folder named by its digest, so another content is another folder. A marker is
written last: a push that a lost cable cut has none. The sizes of all files are compared as well,
because an app can delete or cut a file; its content the app checks when it loads it.
"""

from __future__ import annotations

import json
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio.to_thread

from orchestrator.device.link import PhoneLink, RemotePathMissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from orchestrator.domain.deadline import Deadline

MARKER: Final = "complete.json"


@dataclass(frozen=True, slots=True)
class Payload:
    """A model on its way to a phone."""

    folder: str  # in the container, named by the digest: `Documents/models/<digest>`
    digest: str  # SHA-256 of the content, 64 hex digits
    files: Mapping[str, bytes | Path]  # by path below the folder


async def package_payload(package: Path, digest: str) -> Payload:
    """Return an `.mlpackage` folder as a payload; its own name is kept below the digest."""

    def listed() -> dict[str, bytes | Path]:
        files = (file for file in sorted(package.rglob("*")) if file.is_file())
        return {file.relative_to(package.parent).as_posix(): file for file in files}

    return Payload(f"Documents/models/{digest}", digest, await anyio.to_thread.run_sync(listed))


async def push_once(
    link: PhoneLink,
    bundle_id: str,
    payload: Payload,
    *,
    deadline: Deadline,
    on_percent: Callable[[float], None] = lambda _: None,
) -> bool:
    """Push a model unless the phone has all of it.

    Args:
        link: The phone.
        bundle_id: The app.
        payload: The model.
        deadline: For all of it.
        on_percent: Called with how much of the local files is sent, 0 to 100.

    Returns:
        Whether anything was sent.

    Raises:
        DeviceError: If the phone or the app's container cannot be reached.
    """
    sizes = await anyio.to_thread.run_sync(_sizes, payload)
    marker = _marker(payload, sizes)
    wanted = sizes | {MARKER: len(marker)}
    if await _present(link, bundle_id, payload.folder, wanted, deadline=deadline):
        return False
    whole_bytes, sent_bytes = max(1, sum(sizes.values())), 0

    def count(piece_bytes: int) -> None:
        nonlocal sent_bytes
        sent_bytes += piece_bytes
        on_percent(100 * sent_bytes / whole_bytes)

    for name, source in payload.files.items():
        remote = f"{payload.folder}/{name}"
        await link.push(bundle_id, source, remote, deadline=deadline, on_bytes=count)
    await link.push(bundle_id, marker, f"{payload.folder}/{MARKER}", deadline=deadline)
    return True


def _sizes(payload: Payload) -> dict[str, int]:
    return {
        name: len(source) if isinstance(source, bytes) else source.stat().st_size
        for name, source in payload.files.items()
    }


def _marker(payload: Payload, sizes: Mapping[str, int]) -> bytes:
    return json.dumps({"digest": payload.digest, "bytes": sum(sizes.values())}).encode()


async def _present(
    link: PhoneLink, bundle_id: str, folder: str, wanted: Mapping[str, int], *, deadline: Deadline
) -> bool:
    """Return whether the phone has every file with its size."""
    # The marker's folder first: where it is missing, nothing else is asked.
    for below in sorted({posixpath.dirname(name) for name in wanted}):
        try:
            listed = await link.list(
                bundle_id, posixpath.join(folder, below).rstrip("/"), deadline=deadline
            )
        except RemotePathMissingError:
            return False
        found = {
            posixpath.basename(file.path): file.size_bytes for file in listed if not file.is_folder
        }
        for name, size_bytes in wanted.items():
            here = posixpath.dirname(name) == below
            if here and found.get(posixpath.basename(name)) != size_bytes:
                return False
    return True
