"""A phone that lies over AFC: names no file system has, false sizes, trees without end."""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.services.afc.codec import Operation, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

_FOLDERS: Final = tuple(f"deeper-{number}" for number in range(400))
_FIRST_HANDLE: Final = 1 << 40  # no handle of an honest file comes near
_MAX_READ_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class AfcLies:
    """What is untrue on every AFC connection of a phone.

    Attributes:
        names: Listed in every folder besides what is there.
        claims_bytes: Size that these say they have.
        sends_bytes: What reading one of them gives before it ends.
        endless: Every folder has hundreds of folders, and each of them too.
        reply_bytes: Every listing is one reply of so many bytes, None for an honest one.
    """

    names: tuple[str, ...] = ()
    claims_bytes: int = 1000
    sends_bytes: int = 1000
    endless: bool = False
    reply_bytes: int | None = None


class LyingPaths:
    """Answers in place of the honest operations where a lie is asked for."""

    def __init__(self, lies: AfcLies, honest: dict[int, Callable[[bytes], Reply]]) -> None:
        self._lies, self._honest = lies, honest
        self._names = {*lies.names, *(_FOLDERS if lies.endless else ())}
        self._left: dict[int, int] = {}  # bytes by handle
        self._handles = itertools.count(_FIRST_HANDLE)
        self.operations: dict[int, Callable[[bytes], Reply]] = {
            **honest,
            Operation.READ_DIR: self._read_dir,
            Operation.GET_FILE_INFO: self._file_info,
            Operation.FILE_OPEN: self._open,
            Operation.FILE_READ: self._read,
            Operation.FILE_CLOSE: self._close,
        }

    def _read_dir(self, body: bytes) -> Reply:
        if self._lies.reply_bytes is not None:
            return Reply(Operation.DATA, bytes(self._lies.reply_bytes))
        invented = _is_invented(body.split(b"\0")[0])
        real = b".\0..\0" if invented else self._honest[Operation.READ_DIR](body).body
        return Reply(Operation.DATA, real + Reply.names(sorted(self._names)).body)

    def _file_info(self, body: bytes) -> Reply:
        path = body.split(b"\0")[0]
        if not self._is_lie(path):
            return self._honest[Operation.GET_FILE_INFO](body)
        kind, size = ("S_IFDIR", 64) if _is_invented(path) else ("S_IFREG", self._lies.claims_bytes)
        times = {"st_mtime": 0, "st_birthtime": 0}
        return Reply.pairs(
            {"st_size": size, "st_blocks": 0, "st_nlink": 1, "st_ifmt": kind} | times
        )

    def _open(self, body: bytes) -> Reply:
        if not self._is_lie(body[8:].split(b"\0")[0]):
            return self._honest[Operation.FILE_OPEN](body)
        handle = next(self._handles)
        self._left[handle] = self._lies.sends_bytes
        return Reply(Operation.FILE_OPEN_RESULT, struct.pack("<Q", handle))

    def _read(self, body: bytes) -> Reply:
        handle, length = struct.unpack_from("<QQ", body)
        if handle not in self._left:
            return self._honest[Operation.FILE_READ](body)
        count = min(length, self._left[handle], _MAX_READ_BYTES)
        self._left[handle] -= count
        return Reply(Operation.DATA, b"x" * count)

    def _close(self, body: bytes) -> Reply:
        (handle,) = struct.unpack_from("<Q", body)
        if self._left.pop(handle, None) is None:
            return self._honest[Operation.FILE_CLOSE](body)
        return Reply.status()

    def _is_lie(self, path: bytes) -> bool:
        return any(path.endswith(name.encode()) for name in self._names) or _is_invented(path)


def _is_invented(path: bytes) -> bool:
    """Return whether a path is a folder that only an endless tree has."""
    return path.rpartition(b"/")[2].startswith(b"deeper-")
