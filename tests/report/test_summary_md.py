from __future__ import annotations

from orchestrator.report.summary_md import (
    SUMMARY_LIMIT_BYTES,
    summary_markdown,
    within_limit,
)
from orchestrator.runlog.documents import SkippedPhone
from tests.report.results import HOSTILE, check, death, phone, run, verdict


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [line.replace("\\|", "").strip("|").split("|") for line in lines]


def test_a_passing_run_is_a_banner_and_one_line_per_phone() -> None:
    text = summary_markdown(run(phone(verdict(tokens_total=4000, trims=3, evictions=1))))
    assert text.startswith("## PASS: 1 of 1 phone passed\n")
    assert "| desk-1 | iPhone 15 Pro | 18.5 | PASS | completed | 4000 | 3 | 1 |" in text
    assert "###" not in text


def test_a_failing_check_shows_value_limit_and_record() -> None:
    failing = check("memory.peak", "fail", value=9, limit=8, unit="x", launch="abc", seq=7)
    text = summary_markdown(run(phone(verdict(failing, outcome="FAIL", cause="assertion_failed"))))
    assert "| memory.peak | fail | 9 x | 8 x | abc #7 | — |" in text
    assert "assertion_failed" in text


def test_a_required_check_without_data_is_listed_with_the_failing_ones() -> None:
    missing = check(result="unmeasured", reason="no trim happened")
    text = summary_markdown(run(phone(verdict(missing, outcome="ERROR"))))
    assert "| trim.on-schedule | unmeasured | — | — | — | no trim happened |" in text


def test_hostile_texts_stay_in_their_cells() -> None:
    hostile = death(alias=HOSTILE, model=HOSTILE, explanation=HOSTILE, os=HOSTILE)
    text = summary_markdown(run(phone(hostile)))
    assert {len(row) for row in rows(text)} == {8, 6}
    assert "<script" not in text
    assert "\x1b" not in text
    text.encode()


def test_virtual_phones_and_the_stand_in_are_marked() -> None:
    marked = summary_markdown(run(phone(verdict(virtual=True, stand_in=True))))
    assert "VIRTUAL" in marked
    assert "STAND-IN APP" in marked
    plain = summary_markdown(run(phone(verdict())))
    assert "VIRTUAL" not in plain
    assert "STAND-IN" not in plain


def test_skipped_phones_are_listed_with_the_reason() -> None:
    old = SkippedPhone(udid="u", alias="old|one", model="iPhone 13", os="17.0", reason="no MLState")
    text = summary_markdown(run(skipped=(old,)))
    assert "No phone was soaked." in text
    assert "* old\\|one (iPhone 13, iOS 17.0): no MLState" in text


def test_an_interrupted_and_an_endless_run_say_so() -> None:
    assert "interrupted by SIGINT" in summary_markdown(run(interrupted_by="SIGINT"))
    assert "the run never ended by itself" in summary_markdown(run(ended_s=None))


def test_a_summary_that_ci_would_refuse_is_cut_at_a_whole_line_and_says_so() -> None:
    failing = [check(f"memory.peak{n}", "fail", reason="x" * 400) for n in range(30)]
    phones = [
        phone(verdict(*failing, outcome="FAIL", alias=f"phone-{n}", explanation="é" * 90))
        for n in range(100)
    ]
    text = summary_markdown(run(*phones))
    assert len(text.encode()) <= SUMMARY_LIMIT_BYTES
    assert text.count("| FAIL |") == 100
    assert " more lines are left out" in text.splitlines()[-1]
    assert {len(row) for row in rows(text)} == {8, 6}


def test_a_text_within_the_limit_is_left_alone() -> None:
    assert within_limit("é\n" * 10, 30) == "é\n" * 10
    assert "3 more lines" in within_limit("é" * 50 + "\n" + "x" * 200 + "\ny\nz\n", 302)


def test_one_megabyte_of_a_phones_text_does_not_crowd_out_the_others() -> None:
    loud = phone(verdict(alias="loud", outcome="FAIL", explanation="x" * 2_000_000))
    text = summary_markdown(run(loud, phone(death(alias="quiet"))))
    assert len(text) < 10_000
    assert "### quiet" in text
