from __future__ import annotations

from orchestrator.report.deciding import deciding_records
from tests.report.results import check
from tests.report.runs import LINES, ROWS

LAUNCH = str(ROWS[0]["launch"])
FIFTH = check(result="fail", launch=LAUNCH, seq=5)


def test_the_record_is_found_with_its_line() -> None:
    (record,) = deciding_records(LINES, [FIFTH, FIFTH])
    assert (record.launch, record.seq, record.line) == (LAUNCH, 5, 5)
    assert record.text == LINES[4].decode().strip()


def test_nothing_is_read_where_no_record_decides() -> None:
    def refusing() -> bytes:
        raise AssertionError("read")

    assert deciding_records(iter(refusing, b""), [check(result="fail")][:0]) == ()


def test_a_record_of_another_launch_is_not_it() -> None:
    assert deciding_records(LINES, [check(result="fail", launch="other", seq=5)]) == ()


def test_damaged_lines_are_passed_over() -> None:
    damaged = [b'{"seq":5,\xff\n', b'"seq":5,' + b"[" * 100_000 + b"\n", *LINES]
    (record,) = deciding_records(damaged, [FIFTH])
    assert record.line == 7


def test_a_long_record_is_cut_and_its_text_can_be_left_out() -> None:
    long = b'{"launch":"%s","seq":5,"text":"%s"}\n' % (LAUNCH.encode(), b"x" * 50_000)
    (record,) = deciding_records([long], [FIFTH])
    assert len(record.text) == 601
    assert record.without_text().text == ""
