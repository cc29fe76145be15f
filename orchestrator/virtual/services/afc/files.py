"""Open files of one AFC connection."""

from __future__ import annotations

import errno
import os
import struct
import time
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.services.afc.codec import OPEN_FLAGS, Operation, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.virtual.services.afc.confinement import Confinement
    from orchestrator.virtual.settings import Storage

_MAX_READ_BYTES: Final = 8 << 20
_MAX_OPEN: Final = 256


class OpenFiles:
    """Handles and what can be done with them. Bodies are the bytes after the packet header."""

    def __init__(self, confinement: Confinement, storage: Storage) -> None:
        self._confinement, self._storage = confinement, storage
        self._descriptors: dict[int, int] = {}
        self._next_handle = 1
        self.operations: dict[int, Callable[[bytes], Reply]] = {
            Operation.FILE_OPEN: self._open,
            Operation.FILE_READ: self._read,
            Operation.FILE_WRITE: self._write,
            Operation.FILE_SEEK: self._seek,
            Operation.FILE_TELL: self._tell,
            Operation.FILE_SET_SIZE: self._set_size,
            Operation.FILE_CLOSE: self._close,
            Operation.FILE_LOCK: self._lock,
        }

    def close_all(self) -> None:
        """Close what the client left open."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    def _open(self, body: bytes) -> Reply:
        (mode,) = struct.unpack_from("<Q", body)
        if mode not in OPEN_FLAGS:
            raise OSError(errno.EINVAL, "unknown mode")
        if len(self._descriptors) >= _MAX_OPEN:
            raise OSError(errno.EPERM, "too many open files")
        path = self._confinement.followed(body[8:].split(b"\0")[0])
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a directory")
        # `path` has its links resolved; one that appears since then is refused.
        flags = OPEN_FLAGS[mode] | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle, self._next_handle = self._next_handle, self._next_handle + 1
        is_new = not path.exists()
        descriptor = self._descriptors[handle] = os.open(path, flags, 0o644)
        if is_new:
            _stamp(descriptor)
        return Reply(Operation.FILE_OPEN_RESULT, struct.pack("<Q", handle))

    def _read(self, body: bytes) -> Reply:
        handle, length = struct.unpack_from("<QQ", body)
        data = os.read(self._descriptor(handle), min(length, _MAX_READ_BYTES))
        return Reply(Operation.DATA, data)

    def _write(self, body: bytes) -> Reply:
        (handle,) = struct.unpack_from("<Q", body)
        descriptor, data = self._descriptor(handle), memoryview(body)[8:]
        before_cut = self._storage.until_cut(len(data))
        fitting = rest = data[: self._storage.take(before_cut)]
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        _stamp(descriptor)
        if before_cut < len(data):
            self._storage.cut()
            raise ConnectionAbortedError(errno.ECONNABORTED, "unplugged on order")
        if len(fitting) < len(data):  # what fits is written, as a file system does
            raise OSError(errno.ENOSPC, "the disk is full")
        return Reply.status()

    def _seek(self, body: bytes) -> Reply:
        handle, whence, offset = struct.unpack_from("<QQq", body)
        if whence > os.SEEK_END:
            raise OSError(errno.EINVAL, "unknown origin")
        os.lseek(self._descriptor(handle), offset, whence)
        return Reply.status()

    def _tell(self, body: bytes) -> Reply:
        (handle,) = struct.unpack_from("<Q", body)
        place = os.lseek(self._descriptor(handle), 0, os.SEEK_CUR)
        return Reply(Operation.FILE_TELL_RESULT, struct.pack("<Q", place))

    def _set_size(self, body: bytes) -> Reply:
        handle, size = struct.unpack_from("<QQ", body)
        os.ftruncate(self._descriptor(handle), size)
        return Reply.status()

    def _close(self, body: bytes) -> Reply:
        (handle,) = struct.unpack_from("<Q", body)
        os.close(self._descriptor(handle))
        del self._descriptors[handle]
        return Reply.status()

    def _lock(self, body: bytes) -> Reply:
        (handle,) = struct.unpack_from("<Q", body)
        self._descriptor(handle)
        return Reply.status()  # one client at a time writes here; nothing to exclude

    def _descriptor(self, handle: int) -> int:
        if handle not in self._descriptors:
            raise OSError(errno.EBADF, "no such handle")
        return self._descriptors[handle]


def _stamp(descriptor: int) -> None:
    """Set a file's time to now, to the nanosecond, as APFS does.

    Linux takes the time of its last tick: two files made within 4 ms would have the same, and
    clients that sort reports by time would not know which came last.
    """
    now_ns = time.time_ns()
    os.utime(descriptor, ns=(now_ns, now_ns))
