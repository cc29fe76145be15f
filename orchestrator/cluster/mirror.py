"""Brings a host's run directory here, while the run goes and at its end.

What only grows is followed by its length; at the end every file is held against the host's
manifest, by content, and what differs is fetched again. Everything already here stays: a broken
connection costs no more than one chunk.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from orchestrator.cluster.run_files import CHUNK_BYTES, inside
from orchestrator.domain.errors import FleetError
from orchestrator.runlog.manifest import digest_of, evidence_files, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Set
    from pathlib import Path

    from orchestrator.cluster.documents import FileState

MANIFEST: Final = "MANIFEST.sha256"
HOSTS: Final = "hosts"  # below a joined run: each host's own run.json, plan.json, events...
_GROWING: Final = frozenset({"stream.ndjson", "console.log", "events.ndjson"})
_TRIES: Final = 3


class DamagedMirrorError(FleetError):
    """A file arrived otherwise than its host's manifest says, again and again."""


class Host(Protocol):
    """Reads the run directory of one host."""

    async def listing(self) -> list[FileState]:
        """Return its files as they are now."""
        ...

    async def read(self, name: str, offset: int) -> bytes:
        """Return up to a chunk of a file, empty at its end."""
        ...


def place_of(host: str, name: str) -> str:
    """Return where a host's file lies in the joined run: phones' folders keep their place."""
    return name if name.startswith("devices/") else f"{HOSTS}/{host}/{name}"


@dataclass(slots=True)
class Mirror:
    """One host's part of a joined run directory."""

    root: Path  # of the joined run
    host: str
    received_bytes: int = 0
    _seen: dict[str, FileState] = field(default_factory=dict)

    async def follow(self, source: Host) -> None:
        """Fetch what grew or changed since the last time."""
        for state in await source.listing():
            passing = state.name.rpartition("/")[2].startswith(".")  # on its way from a phone
            if not passing and state.name != MANIFEST and self._seen.get(state.name) != state:
                await self._update(source, state)
                self._seen[state.name] = state

    async def complete(self, source: Host) -> None:
        """Fetch what is missing and verify everything against the host's manifest.

        Raises:
            DamagedMirrorError: If a file differs from it here and not at its host.
        """
        await self._replace(source, MANIFEST)
        listed = read_manifest(self._path(MANIFEST))
        for name, digest in listed.items():
            await self._verified(source, name, digest)
        # What the manifest does not know is evidence too: that it is new will be seen.
        there = {state.name for state in await source.listing()}
        for name in there - listed.keys() - {MANIFEST}:
            await self._replace(source, name)
        self._drop_passing(there | listed.keys())

    def _drop_passing(self, names: Set[str]) -> None:
        """Delete what was followed while it lasted: half a transfer from a phone, say."""
        own = {place_of(self.host, name) for name in names}
        folders = {"/".join(name.split("/")[:2]) for name in own}  # of phones, and the host's
        for folder in folders:
            for path in evidence_files(self.root / folder):
                if path.relative_to(self.root).as_posix() not in own:
                    path.unlink()

    async def _verified(self, source: Host, name: str, digest: str) -> None:
        path = self._path(name)
        for _ in range(_TRIES):
            if path.exists() and digest_of(path) == digest:
                return
            fetched = await self._replace(source, name)
            if fetched != digest and fetched == await self._digest_there(source, name):
                return  # its host has it like this: a finding of the report, not of the mirror
        raise DamagedMirrorError(f"{self.host}: {name} arrived damaged {_TRIES} times")

    async def _digest_there(self, source: Host, name: str) -> str:
        """Return the digest of a file as a second reading gives it."""
        digest, offset = hashlib.sha256(), 0
        while chunk := await self._read(source, name, offset):
            digest.update(chunk)
            offset += len(chunk)
        return digest.hexdigest()

    async def _update(self, source: Host, state: FileState) -> None:
        path = self._path(state.name)
        grows = path.name in _GROWING
        if not grows or (path.exists() and path.stat().st_size > state.size):
            await self._replace(source, state.name)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        offset = path.stat().st_size if path.exists() else 0
        with path.open("ab", buffering=0) as file:
            while offset < state.size:
                chunk = await self._read(source, state.name, offset)
                if not chunk:
                    return  # it shrank: the end will tell
                file.write(chunk)
                offset += len(chunk)

    async def _replace(self, source: Host, name: str) -> str:
        """Fetch a whole file; return its digest."""
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.mirror.tmp")
        digest, offset = hashlib.sha256(), 0
        with part.open("wb") as file:
            while chunk := await self._read(source, name, offset):
                file.write(chunk)
                digest.update(chunk)
                offset += len(chunk)
                if len(chunk) < CHUNK_BYTES:
                    break
        part.replace(path)
        return digest.hexdigest()

    async def _read(self, source: Host, name: str, offset: int) -> bytes:
        chunk = await source.read(name, offset)
        self.received_bytes += len(chunk)
        return chunk

    def _path(self, name: str) -> Path:
        # The name is another host's word: it must not lead out of the run directory.
        return inside(self.root, place_of(self.host, name))


def joined_manifest(root: Path, hosts: Iterable[str]) -> dict[str, str]:
    """Return the digests of a joined run whose hosts all came to their end, by name.

    A host's files are those of its own manifest, with the digests they have there: joining must
    hide no difference.
    """
    listed: dict[str, str] = {}
    sealed = ["devices/"]
    for host in hosts:
        own = root / HOSTS / host / MANIFEST
        if own.exists():
            listed |= {place_of(host, name): digest for name, digest in read_manifest(own).items()}
            sealed.append(f"{HOSTS}/{host}/")
    for path in evidence_files(root):
        name = path.relative_to(root).as_posix()
        if not name.startswith(tuple(sealed)):
            listed[name] = digest_of(path)
    return listed
