"""Remembers digests of packages while their files do not change.

Hashing 757 MB takes half a second, longer than all the rest of an inspection. So a digest is kept
with a stamp of the files: path, size, inode, times of writing and of change in nanoseconds. Nothing
here hashes, so that an inspection that finds its digest loads no cryptography.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

_ENTRY_LIMIT: Final = 200


def default_cache() -> Path:
    """Return the cache file: `fleet/digests.json` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "fleet" / "digests.json"


def known_digest(package: Path, cache: Path) -> str | None:
    """Return the digest if it is remembered and no file has changed since, else None."""
    known = _load(cache).get(str(package.resolve()))
    return known[1] if known is not None and known[0] == stamp_of(package) else None


def remember_digest(package: Path, stamp: str, digest: str, cache: Path) -> None:
    """Keep a digest, unless a file changed since the stamp was taken, which was before hashing."""
    if stamp_of(package) != stamp:
        return
    entries = _load(cache)
    entries.pop(str(package.resolve()), None)
    entries[str(package.resolve())] = (stamp, digest)
    _store(cache, dict(list(entries.items())[-_ENTRY_LIMIT:]))


def stamp_of(package: Path) -> str:
    """Return what changes when a file of the package does."""
    return json.dumps(
        [
            [str(file.relative_to(package)), at.st_size, at.st_ino, at.st_mtime_ns, at.st_ctime_ns]
            for file in sorted(package.rglob("*"))
            if file.is_file()
            for at in [file.stat()]
        ]
    )


def _load(cache: Path) -> dict[str, tuple[str, str]]:
    """Return the remembered digests; a cache that cannot be read is an empty one."""
    try:
        content = json.loads(cache.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {
        path: (value[0], value[1])
        for path, value in content.items()
        if isinstance(value, list) and len(value) == 2 and all(isinstance(x, str) for x in value)
    }


def _store(cache: Path, entries: dict[str, tuple[str, str]]) -> None:
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        partial = cache.with_name(f"{cache.name}.{os.getpid()}")
        partial.write_text(json.dumps(entries), encoding="utf-8")
        partial.replace(cache)
    except OSError:
        return  # without a cache the digest is computed again
