from __future__ import annotations

from orchestrator.report.coverage import Cell, coverage_of
from orchestrator.runlog.documents import SkippedPhone
from tests.report.results import phone, run, verdict


def test_models_by_ios_say_pass_fail_inconclusive_and_not_run() -> None:
    coverage = coverage_of(
        run(
            phone(verdict(model="iPhone 16", os="18.10", alias="a")),
            phone(verdict(model="iPhone 14", os="18.9", alias="b", outcome="FAIL")),
            phone(verdict(model="iPhone 14", os="18.10", alias="c", outcome="ERROR")),
        )
    )
    assert coverage.versions == ("18.9", "18.10")
    assert coverage.rows == (
        ("iPhone 14", (Cell("fail", ((2, "b"),)), Cell("inconclusive", ((3, "c"),)))),
        ("iPhone 16", (Cell("not run", ()), Cell("pass", ((1, "a"),)))),
    )


def test_the_worst_phone_of_a_cell_decides_it() -> None:
    (row,) = coverage_of(run(phone(verdict()), phone(verdict(outcome="FAIL")))).rows
    assert row[1][0].result == "fail"


def test_skipped_phones_are_not_run_and_uncovered_models_are_named() -> None:
    skipped = SkippedPhone(udid="u", alias="old", model="iPhone 13", os="18.5", reason="old")
    coverage = coverage_of(run(phone(verdict()), skipped=(skipped,)))
    assert ("iPhone 13", (Cell("not run", ()),)) in coverage.rows
    assert "iPhone 16e" in coverage.models_left_out
    assert "iPhone 15 Pro" not in coverage.models_left_out
    assert "iPhone 17" not in coverage.models_left_out


def test_an_expected_phone_that_nobody_found_has_no_model() -> None:
    coverage = coverage_of(run(phone(verdict(model="unknown", os="unknown", outcome="ERROR"))))
    assert coverage.rows == ()
    assert coverage.absent == ((1, "desk-1"),)
