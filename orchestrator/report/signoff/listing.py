"""The manifest of a bundle: SHA-256 of every file, in the format of `sha256sum`."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MANIFEST: Final = "MANIFEST.sha256"
STATEMENT: Final = "statement.dsse.json"
EVIDENCE: Final = "evidence"
DOCUMENT: Final = "signoff.html"
DOCUMENT_PDF: Final = "signoff.pdf"
FACTS: Final = "signoff.json"
POLICY: Final = "policy.yaml"
_UNLISTED: Final = frozenset({MANIFEST, STATEMENT})  # the statement vouches for them


def sha256_of(path: Path) -> str:
    """Return the digest of a file, 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def manifest_bytes(root: Path) -> bytes:
    """Return the manifest of all files below a bundle."""
    lines = [
        f"{sha256_of(root / name)}  {_escaped(name)}\n"
        for name in sorted(paths_below(root))
        if name not in _UNLISTED
    ]
    return "".join(lines).encode("utf-8", "surrogateescape")


def differences(root: Path, manifest: bytes) -> list[str]:
    """Return what is changed, missing or added below a bundle, each by its name."""
    listed: dict[str, str] = {}
    for line in manifest.decode("utf-8", "surrogateescape").splitlines():
        digest, _, name = line.partition("  ")
        listed[name] = digest
    present = {_escaped(name): name for name in paths_below(root) if name not in _UNLISTED}
    found = [f"missing: {name}" for name in listed if name not in present]
    for shown, name in present.items():
        path = root / name
        if shown not in listed:
            found.append(f"added: {shown}")
        elif path.is_symlink() or not path.is_file() or sha256_of(path) != listed[shown]:
            found.append(f"changed: {shown}")
    return sorted(found)


def paths_below(root: Path) -> Iterator[str]:
    """Yield everything but full folders below a root: files, links, empty folders, devices."""
    for folder, folders, files in os.walk(root):
        here = os.path.relpath(folder, root)
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in (*files, *links):
            yield name if here == "." else f"{here}/{name}"
        if not folders and not files and here != ".":
            yield here


def _escaped(name: str) -> str:
    """Return a name on one line; a phone may have named a report as it likes."""
    return name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
