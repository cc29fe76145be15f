"""What can be wrong with a model package, as one line that names the file and the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.domain.errors import FleetError
from orchestrator.domain.outcome import ExitCode

if TYPE_CHECKING:
    from pathlib import Path


class PackageError(FleetError):
    """A model package cannot be read."""

    exit_code = ExitCode.USAGE

    def __init__(self, file: Path | str, reason: str, *, remedy: str = "") -> None:
        # Names come from the package: they must not break the line or steer a terminal.
        self.file, self.reason = _plain(str(file)), _plain(reason)
        super().__init__(f"{self.file}: {self.reason}", remedy=remedy)


class FormatError(ValueError):
    """Bytes break the format they claim; the caller knows the file and says it."""


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)
