"""Stream and journal of an attempt's launches to one ordered file of unique records.

The stream arrived live and may have holes and repeats from reconnects; the journal was pulled
afterwards and may be missing or cut. A record that is in both is taken from the journal: it is
what the app wrote before it acted.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.runlog.lines import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from orchestrator.runlog.layout import AttemptPaths

_JOURNAL: Final = 0
_STREAM: Final = 1


@dataclass(slots=True)
class MergeCounts:
    """What a merge saw; complete once its lines were all taken."""

    stream_records: int = 0
    journal_records: int = 0
    differing_records: int = 0  # same launch and seq in both, other bytes
    unreadable_lines: int = 0  # torn or damaged: in no output, their `seq` is a gap there


class _Ordinal(msgspec.Struct, frozen=True, gc=False):
    seq: int
    kind: str = ""


_DECODER: Final = msgspec.json.Decoder(_Ordinal)


@dataclass(frozen=True, slots=True)
class AttemptMerge:
    """The merged raw lines of one attempt; iterate it once.

    Lines come with a newline each, by launch and then by `seq`, every `seq` once. Memory does not
    grow with the files: both are read in step.
    """

    attempt: AttemptPaths
    counts: MergeCounts = field(default_factory=MergeCounts)

    def __iter__(self) -> Iterator[bytes]:
        for launch in launch_numbers(self.attempt):
            yield from self._of_launch(self.attempt.journal(launch), self.attempt.stream(launch))

    def _of_launch(self, journal: Path, stream: Path) -> Iterator[bytes]:
        entries = heapq.merge(
            self._rising(journal, _JOURNAL), self._rising(stream, _STREAM), key=itemgetter(0, 1)
        )
        for _, same in groupby(entries, key=itemgetter(0)):
            lines = []  # one, or the journal's before the stream's
            for _, source, line in same:
                self._count(source)
                lines.append(line)
            self.counts.differing_records += lines[0] != lines[-1]
            yield lines[0]

    def _count(self, source: int) -> None:
        if source == _JOURNAL:
            self.counts.journal_records += 1
        else:
            self.counts.stream_records += 1

    def _rising(self, path: Path, source: int) -> Iterator[tuple[int, int, bytes]]:
        """Yield `seq`, source and line, without the repeats that a reconnect makes."""
        newest = 0
        for line in read_lines(path):
            seq = _seq_of(line.content)
            if seq is None:
                self.counts.unreadable_lines += 1
            elif seq > newest:
                newest = seq
                # A killed writer may have left out only the newline.
                yield seq, source, line.content.removesuffix(b"\n") + b"\n"


def launch_numbers(attempt: AttemptPaths) -> list[int]:
    """Return the numbers of the launches that left files, in order."""
    names = (path.name for path in (attempt.root / "launches").glob("*"))
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())


def newest_seq(stream: Path) -> int:
    """Return the highest `seq` of a file's records, 0 where it has none."""
    return max((_seq_of(line.content) or 0 for line in read_lines(stream)), default=0)


def ends_with_bye(journal: Path) -> bool:
    """Return whether the app said its last word."""
    last = None
    for line in read_lines(journal):
        last = line
    ordinal = _ordinal_of(last.content) if last is not None else None
    return ordinal is not None and ordinal.kind == "bye"


def _seq_of(line: bytes) -> int | None:
    ordinal = _ordinal_of(line)
    return None if ordinal is None else ordinal.seq


def _ordinal_of(line: bytes) -> _Ordinal | None:
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
