"""All reports of files and folders, in a stream: one incident once, in memory that stays small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.evidence.parse import incident_key, read_reports
from orchestrator.evidence.reports import Unparsed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from orchestrator.evidence.reports import ParsedReport


@dataclass(slots=True)
class Copies:
    """How many reports were not yielded because they say one incident again."""

    count: int = 0


def collected(paths: Sequence[Path], copies: Copies | None = None) -> Iterator[ParsedReport]:
    """Yield every incident below some paths once; its first readable copy, else its first.

    Unreadable reports wait for a readable copy until the end; of all others only the incident is
    remembered. `copies`, where given, is complete once the last report was yielded.
    """
    left_out = copies if copies is not None else Copies()
    seen: set[int] = set()  # hashes: 10,000 reports then cost less than a megabyte
    waiting: dict[str, ParsedReport] = {}
    for path in files_below(paths):
        for report in read_reports(path, str(path)):
            key = incident_key(report)
            if key is None:
                yield report
                continue
            left_out.count += hash(key) in seen or key in waiting
            if isinstance(report, Unparsed):
                waiting.setdefault(key, report)
            elif hash(key) not in seen:
                seen.add(hash(key))
                waiting.pop(key, None)
                yield report
    yield from (report for key, report in waiting.items() if hash(key) not in seen)


def files_below(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files among some paths and below the folders among them, sorted within a folder.

    Links to folders, pipes and devices are left out: reading them may never end.
    """
    for path in paths:
        if path.is_dir():
            yield from _walk(path)
        elif path.is_file() or not path.exists():
            yield path  # what vanished is said when it is read


def _walk(folder: Path) -> Iterator[Path]:
    folders = [folder]
    while folders:
        current = folders.pop()
        try:
            entries = sorted(current.iterdir())
        except OSError:
            yield current  # an unreadable folder is said, not passed over
            continue
        folders += reversed([path for path in entries if path.is_dir() and not path.is_symlink()])
        yield from (path for path in entries if path.is_file())
