"""`MANIFEST.sha256`: digests of the evidence, written once when a run ends, never rewritten.

The format is that of `sha256sum`, so anybody can verify a run without this tool.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from orchestrator.domain.errors import RunDirectoryError
from orchestrator.runlog.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_DERIVED: Final = frozenset(
    {"junit.xml", "summary.json", "summary.md", "verdict.json", "MANIFEST.sha256"}
)


def evidence_files(root: Path) -> list[Path]:
    """Return the files of a run that are evidence, sorted; derived files are not."""
    return sorted(
        path
        for path in root.rglob("*")
        if path.is_file()
        and not path.is_symlink()
        and path.name not in _DERIVED
        and path.relative_to(root).parts[0] != "report"
        and not path.name.endswith(".tmp")
    )


def write_manifest(root: Path, digests: Mapping[str, str] | None = None) -> None:
    """Write the manifest of a run unless it has one.

    Args:
        root: The run directory.
        digests: By name, where they are known from elsewhere; None reads the files.
    """
    target = root / "MANIFEST.sha256"
    if target.exists():
        return
    if digests is None:
        files = evidence_files(root)
        digests = {path.relative_to(root).as_posix(): digest_of(path) for path in files}
    lines = [f"{digest}  {name}\n" for name, digest in sorted(digests.items())]
    replace_file(target, "".join(lines).encode("utf-8", "surrogateescape"))


def read_manifest(path: Path) -> dict[str, str]:
    """Return the digests that a manifest lists, by name.

    Raises:
        RunDirectoryError: If it cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise RunDirectoryError(f"{path}: {error.strerror or error}") from error
    pairs = (line.partition("  ") for line in text.splitlines())
    return {name: digest for digest, _, name in pairs}


def differing_files(root: Path) -> list[str] | None:
    """Return the paths that differ from the manifest, are missing or are new.

    None where the run has no manifest: it was killed before its end.
    """
    target = root / "MANIFEST.sha256"
    if not target.exists():
        return None
    listed = read_manifest(target)
    present = {path.relative_to(root).as_posix(): path for path in evidence_files(root)}
    return sorted(
        name
        for name in listed.keys() | present.keys()
        if name not in present or digest_of(present[name]) != listed.get(name)
    )


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
