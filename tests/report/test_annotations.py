from __future__ import annotations

import re

from orchestrator.report.annotations import PER_KIND, annotation_lines
from tests.report.results import HOSTILE, check, death, verdict

COMMAND = re.compile(r"::(error|warning|notice) title=[^:,\n]*::[^\n]*")


def test_a_passing_phone_gets_none() -> None:
    assert annotation_lines([verdict(check())], []) == []


def test_a_failure_is_an_error_with_value_limit_and_reason() -> None:
    failing = check("memory.peak", "fail", value=9, limit=8, unit="x", reason="50% over")
    lines = annotation_lines([verdict(failing, outcome="FAIL", cause="assertion_failed")], [])
    assert lines[1] == (
        "::error title=memory.peak on desk-1 (iPhone 15 Pro%2C iOS 18.5)::"
        "9 x, limit 8 x: 50%25 over"
    )


def test_a_lab_error_and_missing_data_are_warnings() -> None:
    missing = check("trim.parity", "unmeasured", reason="no audit")
    optional = check("perf.decay", "unmeasured", reason="too short")
    lines = annotation_lines([verdict(missing, optional, outcome="ERROR")], {"trim.parity"})
    assert [line.split(" ")[0] for line in lines] == ["::warning", "::warning"]
    assert lines[1].endswith("::no audit")


def test_there_are_at_most_ten_of_a_kind_and_the_tenth_counts_the_rest() -> None:
    failing = [check(f"c{n}", "fail") for n in range(40)]
    lost = [verdict(outcome="ERROR", cause="device_lost") for _ in range(10)]
    lines = annotation_lines([verdict(*failing, outcome="FAIL"), *lost], [])
    errors = [line for line in lines if line.startswith("::error")]
    assert len(errors) == PER_KIND
    assert "32 more of this kind" in errors[-1]
    assert sum(line.startswith("::warning") for line in lines) == PER_KIND


def test_hostile_texts_stay_inside_their_command() -> None:
    bad = f"{HOSTILE}\r\n::error::owned%0A,title=x::y"
    failing = check(bad, "fail", reason=bad)
    lines = annotation_lines([death(alias=bad, model=bad, os=bad, explanation=bad * 900)], [])
    lines += annotation_lines([verdict(failing, alias=bad, outcome="FAIL")], [])
    for line in lines:
        assert COMMAND.fullmatch(line)
        assert line.isprintable()
        assert len(line.encode()) < 8000
