"""`MANIFEST.sha256`: digests of the evidence, written once when a run ends, never rewritten.

The format is that of `sha256sum`, so anybody can verify a run without this tool.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from orchestrator.runlog.files import replace_file

if TYPE_CHECKING:
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


def write_manifest(root: Path) -> None:
    """Write the manifest of a run unless it has one."""
    target = root / "MANIFEST.sha256"
    if target.exists():
        return
    lines = [
        f"{_digest(path)}  {path.relative_to(root).as_posix()}\n" for path in evidence_files(root)
    ]
    replace_file(target, "".join(lines).encode("utf-8", "surrogateescape"))


def differing_files(root: Path) -> list[str] | None:
    """Return the paths that differ from the manifest, are missing or are new.

    None where the run has no manifest: it was killed before its end.
    """
    target = root / "MANIFEST.sha256"
    if not target.exists():
        return None
    listed: dict[str, str] = {}
    for line in target.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        digest, _, name = line.partition("  ")
        listed[name] = digest
    present = {path.relative_to(root).as_posix(): path for path in evidence_files(root)}
    return sorted(
        name
        for name in listed.keys() | present.keys()
        if name not in present or _digest(present[name]) != listed.get(name)
    )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
