from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.runlog.layout import AttemptPaths
from orchestrator.runlog.merge import AttemptMerge, launch_numbers

if TYPE_CHECKING:
    from pathlib import Path


def line(seq: int, note: str = "") -> bytes:
    return b'{"launch":"a","seq":%d,"note":"%s"}\n' % (seq, note.encode())


def write(path: Path, *lines: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))


@pytest.fixture
def attempt(tmp_path: Path) -> AttemptPaths:
    return AttemptPaths(tmp_path / "attempts" / "1")


def test_the_journal_fills_the_holes_of_the_stream(attempt: AttemptPaths) -> None:
    write(attempt.stream(1), line(1), line(4), line(5))
    write(attempt.journal(1), line(1), line(2), line(3), line(4))
    assert list(AttemptMerge(attempt)) == [line(seq) for seq in (1, 2, 3, 4, 5)]


def test_one_file_alone_is_enough(attempt: AttemptPaths) -> None:
    write(attempt.stream(1), line(1), line(2))
    write(attempt.journal(2), line(1))
    assert list(AttemptMerge(attempt)) == [line(1), line(2), line(1)]


def test_records_that_a_reconnect_repeats_are_taken_once(attempt: AttemptPaths) -> None:
    write(attempt.stream(1), line(1), line(2), line(1), line(2), line(3))
    merge = AttemptMerge(attempt)
    assert list(merge) == [line(1), line(2), line(3)]
    assert merge.counts.stream_records == 3


def test_the_journal_wins_and_the_difference_is_counted(attempt: AttemptPaths) -> None:
    write(attempt.stream(1), line(1), line(2, "stream"))
    write(attempt.journal(1), line(1), line(2, "journal"))
    merge = AttemptMerge(attempt)
    assert list(merge) == [line(1), line(2, "journal")]
    assert (merge.counts.differing_records, merge.counts.journal_records) == (1, 2)


def test_launches_come_in_the_order_of_their_numbers(attempt: AttemptPaths) -> None:
    for number in (10, 9, 1):
        write(attempt.journal(number), line(1, str(number)))
    (attempt.root / "launches" / "²").mkdir()
    assert launch_numbers(attempt) == [1, 9, 10]
    assert list(AttemptMerge(attempt)) == [line(1, note) for note in ("1", "9", "10")]


@pytest.mark.parametrize("cut", range(1, len(line(2))))
def test_a_torn_last_line_is_dropped_unless_it_is_whole(attempt: AttemptPaths, cut: int) -> None:
    write(attempt.stream(1), line(1), line(2)[:cut])
    whole = cut == len(line(2)) - 1
    merge = AttemptMerge(attempt)
    assert list(merge) == ([line(1), line(2)] if whole else [line(1)])
    assert merge.counts.unreadable_lines == (0 if whole else 1)


@pytest.mark.parametrize(
    "damaged", [b"\xff\xfe\n", b"[]\n", b'{"seq":"1"}\n', b"{" * 5000 + b"\n", b"x" * (2 << 20)]
)
def test_damaged_lines_are_left_out(attempt: AttemptPaths, damaged: bytes) -> None:
    write(attempt.journal(1), line(1), damaged, b"\n", line(3))
    assert list(AttemptMerge(attempt)) == [line(1), line(3)]


def test_an_attempt_without_launches_has_no_lines(attempt: AttemptPaths) -> None:
    assert list(AttemptMerge(attempt)) == []
