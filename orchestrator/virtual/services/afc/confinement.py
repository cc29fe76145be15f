"""Which file of the host a path from an AFC client means, and that it never leaves the root."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True, slots=True)
class Confinement:
    """A folder that clients cannot leave, neither by `..` nor through links.

    Attributes:
        root: The folder that clients see as `/`. Real, without links.
        visible: The one entry of the root that may be used, or None for all of it
            (VendDocuments shows the container's `Documents` only).
    """

    root: Path
    visible: str | None = None

    @classmethod
    def of(cls, root: Path, visible: str | None = None) -> Confinement:
        """Return the confinement to a folder, its own links resolved."""
        return cls(root.resolve(), visible)

    def entry(self, name: bytes) -> Path:
        """Return the path of the entry itself; a link is not followed.

        Raises:
            PermissionError: If the path leads out of the root.
        """
        path = self._lexical(name)
        if path == self.root:
            return path
        self._require_inside(_resolved(path.parent))
        return path

    def followed(self, name: bytes) -> Path:
        """Return the path of what the entry leads to, links followed.

        Raises:
            PermissionError: If the path leads out of the root.
        """
        path = _resolved(self._lexical(name))
        self._require_inside(path)
        return path

    def check_link(self, link: Path, target: bytes) -> str:
        """Return the text of a new symbolic link.

        Raises:
            PermissionError: If the link would lead out of the root.
        """
        text = os.fsdecode(target)
        if PurePosixPath(text).is_absolute():
            raise _outside(text)
        self._require_inside(_resolved(link.parent / text))
        return text

    def _lexical(self, name: bytes) -> Path:
        # `/..` is `/` on the phone as well: climbing above the root is cut, not refused.
        text = os.path.normpath("/" + os.fsdecode(name).lstrip("/"))
        parts = PurePosixPath(text).parts[1:]
        if self.visible is not None and parts and parts[0] != self.visible:
            raise _outside(text)
        return self.root.joinpath(*parts)

    def _require_inside(self, path: Path) -> None:
        if path != self.root and self.root not in path.parents:
            raise _outside(str(path))


def _resolved(path: Path) -> Path:
    """Return a path with its links followed.

    Raises:
        OSError: ELOOP for links that lead to each other, which `resolve` tells as a RuntimeError.
    """
    try:
        return path.resolve()
    except RuntimeError as error:
        raise OSError(errno.ELOOP, "links lead to each other", str(path)) from error


def _outside(path: str) -> PermissionError:
    return PermissionError(errno.EACCES, "leads out of the folder that is served", path)
