"""A release passes on complete evidence alone; each gap is refused by its own reason."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import pytest

from orchestrator.report.signoff.decision import Gap, decide, os_matches
from orchestrator.report.signoff.evidence import PhoneEvidence, RunEvidence, read_evidence
from orchestrator.report.signoff.policy import FLOOR
from orchestrator.runlog.documents import CheckDocument
from tests.report.signoff.releases import (
    MODEL,
    release,
    requirement,
    waiver,
    without_notices,
    write_real_run,
)
from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import Spec

if TYPE_CHECKING:
    from pathlib import Path

TODAY = date(2026, 3, 1)


def phone(**facts: object) -> PhoneEvidence:
    checks = tuple(CheckDocument(id=each, result="pass") for each in FLOOR)
    plain = PhoneEvidence(
        run_id="run-1",
        alias="bench-1",
        udid="u",
        model=MODEL,
        os="18.5",
        virtual=False,
        stand_in=False,
        unlisted=None,
        outcome="PASS",
        cause="completed",
        explanation="The soak ran to its end.",
        inference_s=3600.0,
        checks=checks,
    )
    return replace(plain, **facts)  # type: ignore[arg-type]


def failing(check_id: str = "trim.notice", **facts: object) -> PhoneEvidence:
    checks = tuple(
        CheckDocument(id=each, result="fail" if each == check_id else "pass", reason="it broke")
        for each in FLOOR
    )
    return phone(outcome="FAIL", cause="assertion_failed", checks=checks, **facts)


def run(*phones: PhoneEvidence, root: Path, **facts: object) -> RunEvidence:
    plain = RunEvidence(
        run_id="run-1",
        root=root,
        app_name="SoakHarness",
        app_sha256="ab" * 32,
        manifest_sha256="cd" * 32,
        started_s=0.0,
        phones=phones,
        tampered=(),
        sealed=True,
        swapped=None,
    )
    return replace(plain, **facts)  # type: ignore[arg-type]


def gaps(policy: object, *runs: RunEvidence) -> list[tuple[Gap, str]]:
    decision = decide(policy, list(runs), TODAY)  # type: ignore[arg-type]
    return [(reason.gap, reason.text) for reason in decision.reasons]


def test_one_long_enough_passing_phone_fills_a_cell(tmp_path: Path) -> None:
    decision = decide(release(), [run(phone(), root=tmp_path)], TODAY)
    assert decision.passes
    assert set(decision.cells[0].passed) == set(FLOOR)


def test_a_missing_cell_is_named(tmp_path: Path) -> None:
    policy = release(require=(requirement(), requirement(model="iPhone 16", os="18.6")))
    assert gaps(policy, run(phone(), root=tmp_path)) == [
        (Gap.MISSING, "iPhone 16, iOS 18.6: no run has such a phone")
    ]


@pytest.mark.parametrize(
    ("facts", "gap", "words"),
    [
        ({"virtual": True}, Gap.VIRTUAL, "is a virtual phone"),
        ({"stand_in": True}, Gap.STAND_IN, "not the Swift one"),
        ({"unlisted": "iOS 17.0 has no MLState"}, Gap.UNLISTED, "no MLState"),
        ({"inference_s": 0.1}, Gap.SHORT, "h of inference"),
        ({"outcome": "ERROR", "explanation": "cable"}, Gap.INCONCLUSIVE, "ERROR, cable"),
        ({"checks": ()}, Gap.UNPROVEN, "not measured by this run"),
    ],
)
def test_evidence_that_does_not_count_is_refused_by_its_own_reason(
    facts: dict[str, object], gap: Gap, words: str, tmp_path: Path
) -> None:
    found = gaps(release(), run(phone(**facts), root=tmp_path))
    assert {each for each, _ in found} == {gap}
    assert all("bench-1" in text and words in text for _, text in found)


def test_another_phone_of_the_cell_makes_up_for_a_virtual_one(tmp_path: Path) -> None:
    both = run(phone(virtual=True, alias="v"), phone(), root=tmp_path)
    assert gaps(release(), both) == []


def test_a_failure_counts_though_another_phone_of_the_cell_passed(tmp_path: Path) -> None:
    both = run(phone(), failing(alias="bench-2"), root=tmp_path)
    assert gaps(release(), both) == [
        (Gap.FAILED, "trim.notice on bench-2 (iPhone 15 Pro, iOS 18.5) in run-1: it broke")
    ]


def test_a_failure_outside_the_required_cells_counts(tmp_path: Path) -> None:
    other = failing(model="iPhone 14", alias="old")
    assert [gap for gap, _ in gaps(release(), run(phone(), other, root=tmp_path))] == [Gap.FAILED]


def test_a_death_without_a_failing_check_cannot_be_waived(tmp_path: Path) -> None:
    dead = phone(outcome="FAIL", cause="crash", explanation="It crashed.")
    found = gaps(release(waiver()), run(dead, root=tmp_path))
    assert [gap for gap, _ in found] == [Gap.FAILED]
    assert "crash: It crashed." in found[0][1]


@pytest.mark.parametrize(
    "facts", [{}, {"phone": "bench-1", "model": None}, {"os": "18.x"}, {"until": "2026-03-01"}]
)
def test_a_waiver_excuses_its_check(facts: dict[str, object], tmp_path: Path) -> None:
    decision = decide(release(waiver(**facts)), [run(failing(), root=tmp_path)], TODAY)
    assert decision.passes
    assert decision.cells[0].waived == ("trim.notice",)
    assert len(decision.used_waivers) == 1


@pytest.mark.parametrize(
    "facts", [{"phone": "other"}, {"os": "17.x"}, {"model": "iPhone 14"}, {"check": "hang.none"}]
)
def test_a_waiver_of_something_else_excuses_nothing(
    facts: dict[str, object], tmp_path: Path
) -> None:
    found = gaps(release(waiver(**facts)), run(failing(), root=tmp_path))
    assert [gap for gap, _ in found] == [Gap.FAILED]


def test_an_expired_waiver_fails_and_excuses_nothing(tmp_path: Path) -> None:
    found = gaps(release(waiver(until="2026-02-28")), run(failing(), root=tmp_path))
    assert [gap for gap, _ in found] == [Gap.EXPIRED, Gap.FAILED]
    assert "LLM-7, Ada) held until 2026-02-28" in found[0][1]


@pytest.mark.parametrize(
    "excuse", [{"virtual": True}, {"inference_s": 0.0}, {"outcome": "ERROR"}, {"stand_in": True}]
)
def test_no_waiver_excuses_what_is_no_evidence(excuse: dict[str, object], tmp_path: Path) -> None:
    waivers = [waiver(check=each) for each in FLOOR]
    assert gaps(release(*waivers), run(phone(**excuse), root=tmp_path))


def test_checks_of_the_policy_come_on_top_of_the_floor(tmp_path: Path) -> None:
    policy = release(require=(requirement(checks=("perf.decay",)),))
    skipped = CheckDocument(id="perf.decay", result="skipped", reason="virtual")
    partly = phone(checks=(*phone().checks, skipped))
    assert gaps(policy, run(partly, root=tmp_path)) == [
        (Gap.UNPROVEN, f"perf.decay on {partly.who}: skipped: virtual")
    ]


def test_several_runs_fill_several_cells(tmp_path: Path) -> None:
    policy = release(require=(requirement(), requirement(model="iPhone 16")))
    runs = [run(phone(), root=tmp_path), run(phone(model="iPhone 16"), root=tmp_path)]
    assert decide(policy, runs, TODAY).passes


def test_runs_of_different_apps_are_refused(tmp_path: Path) -> None:
    other = run(phone(), root=tmp_path, app_sha256="ef" * 32, run_id="run-2")
    found = gaps(release(), run(phone(), root=tmp_path), other)
    assert [gap for gap, _ in found] == [Gap.MIXED]


def test_no_run_at_all_is_refused() -> None:
    assert [gap for gap, _ in gaps(release())] == [Gap.MISSING]


@pytest.mark.parametrize(
    ("pattern", "os", "matches"),
    [
        ("18.x", "18.5", True),
        ("18.x", "18", True),
        ("18.x", "180.1", False),
        ("18.5", "18.5", True),
        ("18.5", "18.5.1", False),
        ("18.5.x", "18.5.1", True),
    ],
)
def test_an_ios_matches_its_pattern(pattern: str, os: str, *, matches: bool) -> None:
    assert os_matches(pattern, os) is matches


# From run directories


def of_directory(root: Path) -> list[tuple[Gap, str]]:
    return gaps(release(), read_evidence(root))


def test_a_sealed_run_on_a_real_phone_is_evidence(tmp_path: Path) -> None:
    assert of_directory(write_real_run(tmp_path / "run").root) == []


def test_a_virtual_run_is_refused(tmp_path: Path) -> None:
    found = of_directory(write_real_run(tmp_path / "run", virtual=True).root)
    assert [gap for gap, _ in found] == [Gap.VIRTUAL]


def test_a_failing_app_is_refused(tmp_path: Path) -> None:
    rows = without_notices(App(Spec(stop_after=120)).run())
    found = of_directory(write_real_run(tmp_path / "run", rows).root)
    assert [gap for gap, _ in found] == [Gap.FAILED, Gap.FAILED]


def test_tampered_telemetry_is_refused_by_name(tmp_path: Path) -> None:
    written = write_real_run(tmp_path / "run")
    telemetry = written.device.telemetry
    telemetry.write_bytes(telemetry.read_bytes().replace(b'"shown":true', b'"shown": true', 1))
    found = of_directory(written.root)
    name = telemetry.relative_to(written.root).as_posix()
    assert (Gap.TAMPERED, f"{name} in run") in found


def test_a_swapped_report_is_refused(tmp_path: Path) -> None:
    written = write_real_run(tmp_path / "run")
    other = write_real_run(tmp_path / "other")
    written.paths.summary_json.write_bytes(other.paths.summary_json.read_bytes())
    assert of_directory(written.root) == [(Gap.SWAPPED, "run: summary.json is of run other")]


def test_a_report_that_says_something_else_than_the_evidence_is_refused(tmp_path: Path) -> None:
    rows = without_notices(App(Spec(stop_after=120)).run())
    written = write_real_run(tmp_path / "run", rows)
    text = written.paths.summary_json.read_text().replace('"FAIL"', '"PASS"')
    written.paths.summary_json.write_text(text)
    assert Gap.SWAPPED in {gap for gap, _ in of_directory(written.root)}


def test_a_run_that_was_killed_is_refused(tmp_path: Path) -> None:
    written = write_real_run(tmp_path / "run")
    written.paths.manifest.unlink()
    assert Gap.UNSEALED in {gap for gap, _ in of_directory(written.root)}
