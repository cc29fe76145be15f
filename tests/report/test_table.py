from __future__ import annotations

from orchestrator.report.table import summary_lines
from tests.report.results import HOSTILE, check, death, phone, run, verdict


def test_phones_are_aligned_and_the_outcome_comes_last() -> None:
    judged = [verdict(alias="a"), verdict(alias="longer", udid="2")]
    lines = summary_lines(run(*map(phone, judged)).summary, judged)
    assert lines == [
        "a       iPhone 15 Pro  iOS 18.5  PASS  completed",
        "longer  iPhone 15 Pro  iOS 18.5  PASS  completed",
        "PASS, exit code 0",
    ]


def test_a_failing_phone_tells_why() -> None:
    judged = death()
    lines = summary_lines(run(phone(judged)).summary, [judged])
    assert lines[1:] == [
        "    The app passed its memory limit and was killed.",
        "    jetsam.none fails, 1 against 0: the app was killed",
        "what it means: fleet explain jetsam_per_process_limit jetsam.none",
        "FAIL, exit code 1",
    ]


def test_a_check_without_a_limit_shows_none() -> None:
    judged = verdict(check("trim.notice", "fail", value=2, unit="cuts"))
    assert "    trim.notice fails, 2 cuts" in summary_lines(run(phone(judged)).summary, [judged])


def test_hostile_texts_cannot_steer_the_terminal() -> None:
    judged = death(alias=HOSTILE, explanation=HOSTILE)
    hostile = run(phone(judged), phone(verdict(check(result="fail", reason=HOSTILE))))
    lines = summary_lines(hostile.summary, [judged])
    assert all("\x1b" not in line and "\n" not in line for line in lines)


def test_a_run_without_phones_has_only_its_outcome() -> None:
    assert summary_lines(run(virtual=True).summary, []) == ["ERROR (virtual), exit code 4"]


def test_the_command_that_explains_a_failure_is_named_with_words_it_knows() -> None:
    judged = death(alias="a")
    bad = (check("hang.none", "fail"), check("not.ours", "fail"))
    other = verdict(*bad, alias="b", udid="2", outcome="FAIL", cause="assertion_failed")
    lines = summary_lines(run(phone(judged), phone(other)).summary, [judged, other])
    assert lines[-2] == (
        "what it means: fleet explain jetsam_per_process_limit jetsam.none hang.none"
    )
