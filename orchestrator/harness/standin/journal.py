"""The journal: every record of a launch, appended before the act it announces.

See docs/protocol.md, 2 and 3.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.harness.standin.clock import LaunchClock

CHAIN_EVERY: Final = 32
MOST_LINE_BYTES: Final = 64 * 1024
SYNCED_KINDS: Final = frozenset({"breadcrumb", "trim", "evict", "state", "fault", "bye"})
HASH_DIGITS: Final = 16


class OversizeRecordError(ValueError):
    """A record does not fit a line of 64 KiB."""


class Journal:
    """Append-only file of records with `seq` and `chain`. Thread-safe.

    Readers take whole lines from `path` up to `size_bytes`; `grown` is notified of every record.
    """

    def __init__(self, path: Path, launch: str, clock: LaunchClock) -> None:
        """Create the file.

        Raises:
            OSError: If it exists or cannot be created.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file = os.open(path, flags, 0o644)
        self.path, self.launch = path, launch
        self._clock = clock
        self.grown = threading.Condition()
        self._chain = hashlib.sha256()
        self.seq = 0
        self.size_bytes = 0

    def append(self, kind: str, fields: dict[str, object]) -> int:
        """Write a record and return its `seq`.

        Raises:
            OversizeRecordError: If the record does not fit a line.
            OSError: If the file cannot be written.
        """
        with self.grown:
            seq = self.seq + 1
            head = {"launch": self.launch, "seq": seq, "t_ns": self._clock.now_ns(), "kind": kind}
            record = {**head, **fields}
            chained = seq % CHAIN_EVERY == 0 or kind == "bye"
            if chained:
                record["chain"] = self._chain.hexdigest()[:HASH_DIGITS]
            line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
            if len(line) > MOST_LINE_BYTES:
                raise OversizeRecordError(f"a {kind} record of {len(line)} bytes")
            self._write(line, synced=kind in SYNCED_KINDS)
            self._extend_chain(line, chained=chained)
            self.seq = seq
            self.size_bytes += len(line)
            self.grown.notify_all()
        return seq

    def _write(self, line: bytes, *, synced: bool) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        if synced:
            os.fsync(self._file)

    def _extend_chain(self, line: bytes, *, chained: bool) -> None:
        if chained:
            self._chain = hashlib.sha256()
        else:
            self._chain.update(line)

    def offset_after(self, seq: int) -> int:
        """Return the byte where the line after record `seq` begins, by reading the file.

        Raises:
            ValueError: If there is no such record yet.
        """
        if not 0 <= seq <= self.seq:
            raise ValueError(f"no record {seq}")
        offset = 0
        with self.path.open("rb") as lines:
            for _ in range(seq):
                offset += len(lines.readline())
        return offset
