"""Apps that a coordinator built, by content: sent once to each host, whole or not at all."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.domain.errors import RunDirectoryError
from orchestrator.runlog.layout import safe_name

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class AppStore:
    """The apps of one agent."""

    folder: Path

    def fleet_app_size(self, sha256: str) -> int:
        """Return how many bytes of an app are here already; -1 if it is whole."""
        if self._whole(sha256).exists():
            return -1
        part = self._part(sha256)
        return part.stat().st_size if part.exists() else 0

    def fleet_app_chunk(self, sha256: str, offset: int, data: bytes, last: bool) -> int:
        """Take bytes of an app; return how many are here, -1 once it is whole.

        Raises:
            RunDirectoryError: If the whole is not what its name says; it then begins anew.
        """
        part = self._part(sha256)
        part.touch(mode=0o600)
        with part.open("r+b") as file:
            file.seek(offset)
            file.write(data)
            file.truncate()
        if not last:
            return offset + len(data)
        if hashlib.sha256(part.read_bytes()).hexdigest() != sha256:
            part.unlink()
            raise RunDirectoryError("the app arrived damaged")
        part.replace(self._whole(sha256))
        return -1

    def _whole(self, sha256: str) -> Path:
        return self.folder / f"{safe_name(sha256)}.ipa"

    def _part(self, sha256: str) -> Path:
        return self.folder / f"{safe_name(sha256)}.part"
