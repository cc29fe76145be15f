"""AFC operations on paths."""

from __future__ import annotations

import os
import shutil
import stat
import struct
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.services.afc.codec import Operation, RefusedError, Reply, Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orchestrator.virtual.kernel.clock import PhoneClock
    from orchestrator.virtual.services.afc.confinement import Confinement

_SYMBOLIC_LINK: Final = 2
_FOLDER_BYTES: Final = 64  # what APFS says of an empty folder, and clients look at

_KINDS: Final = {
    stat.S_IFDIR: "S_IFDIR",
    stat.S_IFLNK: "S_IFLNK",
    stat.S_IFREG: "S_IFREG",
    stat.S_IFSOCK: "S_IFSOCK",
    stat.S_IFIFO: "S_IFIFO",
}


class PathOperations:
    """Folders, links and attributes below one root."""

    def __init__(self, confinement: Confinement, clock: PhoneClock) -> None:
        self._confinement, self._clock = confinement, clock
        self.operations: dict[int, Callable[[bytes], Reply]] = {
            Operation.READ_DIR: self._read_dir,
            Operation.GET_FILE_INFO: self._file_info,
            Operation.MAKE_DIR: self._make_dir,
            Operation.REMOVE_PATH: self._remove,
            Operation.REMOVE_PATH_AND_CONTENTS: self._remove_all,
            Operation.RENAME_PATH: self._rename,
            Operation.MAKE_LINK: self._make_link,
            Operation.TRUNCATE: self._truncate,
            Operation.SET_FILE_TIME: self._set_time,
        }

    def _read_dir(self, body: bytes) -> Reply:
        folder = self._confinement.followed(_name(body))
        if folder.is_file():
            raise RefusedError(Status.READ_ERROR)
        names = sorted(os.listdir(folder))
        visible = self._confinement.visible
        if visible is not None and folder == self._confinement.root:
            names = [name for name in names if name == visible]
        return Reply.names([".", "..", *names])

    def _file_info(self, body: bytes) -> Reply:
        path = self._confinement.entry(_name(body))
        about = path.lstat()
        kind = _KINDS.get(stat.S_IFMT(about.st_mode), "S_IFREG")
        is_folder, skew_ns = kind == "S_IFDIR", self._clock.skew_ns
        values: dict[str, object] = {
            "st_size": _FOLDER_BYTES if is_folder else about.st_size,
            "st_blocks": 0 if is_folder else about.st_blocks,
            "st_nlink": about.st_nlink,
            "st_ifmt": kind,
            "st_mtime": about.st_mtime_ns + skew_ns,
            "st_birthtime": about.st_ctime_ns + skew_ns,
        }
        if kind == "S_IFLNK":
            values["LinkTarget"] = os.readlink(path)
        return Reply.pairs(values)

    def _make_dir(self, body: bytes) -> Reply:
        try:
            self._confinement.followed(_name(body)).mkdir(parents=True, exist_ok=True)
        except NotADirectoryError as error:  # a file is in the way
            raise RefusedError(Status.OBJECT_EXISTS) from error
        return Reply.status()

    def _remove(self, body: bytes) -> Reply:
        path = self._removable(_name(body))
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()
        return Reply.status()

    def _remove_all(self, body: bytes) -> Reply:
        path = self._removable(_name(body))
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
        return Reply.status()

    def _removable(self, name: bytes) -> Path:
        path = self._confinement.entry(name)
        if path == self._confinement.root:
            raise PermissionError(1, "the root stays")
        return path

    def _rename(self, body: bytes) -> Reply:
        source, target = _names(body)
        self._removable(source).rename(self._removable(target))
        return Reply.status()

    def _make_link(self, body: bytes) -> Reply:
        (kind,) = struct.unpack_from("<Q", body)
        target, name = _names(body[8:])
        link = self._confinement.entry(name)
        if kind == _SYMBOLIC_LINK:
            link.symlink_to(self._confinement.check_link(link, target))
        else:
            link.hardlink_to(self._confinement.followed(target))
        return Reply.status()

    def _truncate(self, body: bytes) -> Reply:
        (size,) = struct.unpack_from("<Q", body)
        os.truncate(self._confinement.followed(_name(body[8:])), size)
        return Reply.status()

    def _set_time(self, body: bytes) -> Reply:
        (time_ns,) = struct.unpack_from("<Q", body)
        os.utime(self._confinement.followed(_name(body[8:])), ns=(time_ns, time_ns))
        return Reply.status()


def _name(body: bytes) -> bytes:
    return body.split(b"\0")[0]


def _names(body: bytes) -> tuple[bytes, bytes]:
    first, second, *_ = [*body.split(b"\0"), b"", b""]
    return first, second
