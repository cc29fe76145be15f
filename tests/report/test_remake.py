from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from orchestrator.report.remake import judge_run, remake
from orchestrator.runlog.documents import AbsentPhone, SkippedPhone, VerdictDocument
from orchestrator.runlog.files import read_document
from orchestrator.runlog.manifest import differing_files, write_manifest
from tests.report.runs import LINES, WrittenRun, jetsam_report, write_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import xmlschema

    from orchestrator.runlog.documents import SummaryDocument

HOSTILE = '<script>alert("x")</script>|\x1b[31m\u202e'


@pytest.fixture
def run(tmp_path: Path) -> WrittenRun:
    return write_run(tmp_path / "run")


def derived(run: WrittenRun) -> dict[str, bytes]:
    paths = run.paths
    files = (paths.junit, paths.summary_json, paths.summary_md, paths.html, run.device.verdict)
    return {file.name: file.read_bytes() for file in files}


def outcome(summary: SummaryDocument) -> tuple[str, str]:
    (phone,) = summary.phones
    return phone.outcome, phone.cause


def test_an_honest_app_passes_and_everything_is_written(run: WrittenRun) -> None:
    write_manifest(run.root)
    summary = remake(run.root)
    assert outcome(summary) == ("PASS", "completed")
    assert (summary.outcome, summary.exit_code, summary.virtual) == ("PASS", 0, True)
    written = json.loads(run.paths.summary_json.read_bytes())
    assert written["phones"][0]["checks"]
    assert written["schema"] == 1
    verdict = read_document(run.device.verdict, VerdictDocument)
    assert verdict.checks == summary.phones[0].checks
    assert all(derived(run).values())


def test_making_it_again_gives_the_same_bytes(run: WrittenRun) -> None:
    write_manifest(run.root)
    remake(run.root)
    first = derived(run)
    remake(run.root)
    assert derived(run) == first


def test_the_evidence_and_its_manifest_are_left_alone(run: WrittenRun) -> None:
    write_manifest(run.root)
    manifest = run.paths.manifest.read_bytes()
    remake(run.root)
    assert run.paths.manifest.read_bytes() == manifest
    assert differing_files(run.root) == []


def test_a_run_without_a_manifest_gets_none(run: WrittenRun) -> None:
    remake(run.root)
    assert not run.paths.manifest.exists()


def test_telemetry_that_differs_from_the_manifest_does_not_pass(run: WrittenRun) -> None:
    write_manifest(run.root)
    run.device.telemetry.write_bytes(b"".join(LINES[:-1]))
    summary = remake(run.root)
    checks = {check.id: check.result for check in summary.phones[0].checks}
    assert checks["telemetry.complete"] == "fail"
    assert summary.exit_code != 0


def test_a_kill_is_told_with_its_raw_report(
    run: WrittenRun, junit_schema: xmlschema.XMLSchema
) -> None:
    run.add_report("JetsamEvent-1.ips", jetsam_report())
    for path in (run.device.telemetry, run.attempt.stream(1), run.attempt.journal(1)):
        path.write_bytes(b"".join(LINES[:-20]))
    summary = remake(run.root)
    assert outcome(summary) == ("FAIL", "jetsam_per_process_limit")
    assert (summary.outcome, summary.exit_code) == ("FAIL", 1)
    junit = run.paths.junit.read_text()
    junit_schema.validate(junit)
    assert "attempts/1/reports/JetsamEvent-1.ips" in junit
    assert "last token index" in junit


def test_reports_with_hostile_names_are_harmless_everywhere(
    run: WrittenRun, junit_schema: xmlschema.XMLSchema
) -> None:
    run.add_report("JetsamEvent <b>&'\".ips", jetsam_report(reason=HOSTILE + "\ud800"))
    remake(run.root)
    junit_schema.validate(run.paths.junit.read_text())
    page = run.paths.html.read_text()
    assert "<script" not in page
    assert "<b>" not in page
    for text in derived(run).values():
        assert b"\x1b" not in text


def test_a_hostile_plan_is_harmless_everywhere(
    run: WrittenRun, junit_schema: xmlschema.XMLSchema
) -> None:
    skipped = SkippedPhone(udid="u", alias=HOSTILE, model=HOSTILE, os=HOSTILE, reason=HOSTILE)
    absent = AbsentPhone(udid="a", alias=HOSTILE, directory="absent-1", reason=HOSTILE)
    run.rewrite_plan(skipped=[skipped], absent=[absent])
    remake(run.root)
    junit_schema.validate(run.paths.junit.read_text())
    assert "<script" not in run.paths.html.read_text()
    assert "<script" not in run.paths.summary_md.read_text()


def test_an_expected_phone_that_is_absent_makes_the_run_inconclusive(run: WrittenRun) -> None:
    absent = AbsentPhone(udid="a", alias="gone", directory="gone-1", reason="not attached")
    run.rewrite_plan(absent=[absent])
    write_manifest(run.root)
    summary = remake(run.root)
    assert [phone.outcome for phone in summary.phones] == ["PASS", "ERROR"]
    assert (summary.outcome, summary.exit_code) == ("ERROR", 4)
    verdict = read_document(run.paths.device("gone-1").verdict, VerdictDocument)
    assert (verdict.alias, verdict.outcome) == ("gone", "ERROR")


@pytest.mark.parametrize(("signal", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_an_interrupted_run_exits_by_its_signal(run: WrittenRun, signal: str, code: int) -> None:
    run.rewrite_run(interrupted_by=signal)
    assert remake(run.root).exit_code == code


def kill_before_plan(run: WrittenRun) -> None:
    for path in (run.paths.plan, run.paths.events):
        path.unlink()


def kill_before_phones(run: WrittenRun) -> None:
    kill_in_soak(run)
    for path in (run.device.device, run.attempt.stream(1), run.paths.events):
        path.unlink()


def kill_in_soak(run: WrittenRun) -> None:
    for path in (run.attempt.evidence, run.attempt.journal(1), run.device.telemetry):
        path.unlink()
    run.attempt.stream(1).write_bytes(b"".join(LINES[:50]) + LINES[50][:20])


def kill_in_collection(run: WrittenRun) -> None:
    run.attempt.evidence.unlink()
    run.device.telemetry.unlink()
    run.attempt.journal(1).write_bytes(b"".join(LINES)[:-7])


def kill_before_the_end(run: WrittenRun) -> None:
    assert run.device.telemetry.exists()


KILLS = (
    kill_before_plan,
    kill_before_phones,
    kill_in_soak,
    kill_in_collection,
    kill_before_the_end,
)


@pytest.mark.parametrize("kill", KILLS)
def test_a_run_killed_at_any_point_is_aborted_and_still_has_its_report(
    run: WrittenRun, kill: Callable[[WrittenRun], None], junit_schema: xmlschema.XMLSchema
) -> None:
    kill(run)
    run.rewrite_run(ended_s=None)
    summary = remake(run.root)
    assert (summary.outcome, summary.exit_code) == ("ABORTED", 4)
    junit_schema.validate(run.paths.junit.read_text())
    assert "never ended" in run.paths.html.read_text()
    assert json.loads(run.paths.summary_json.read_bytes())["outcome"] == "ABORTED"


def test_a_killed_runs_records_are_merged_on_the_way_and_counted(run: WrittenRun) -> None:
    kill_in_collection(run)
    run.rewrite_run(ended_s=None)
    (phone,) = judge_run(run.root).phones
    assert phone.verdict.tokens_total == 120
    assert not run.device.telemetry.exists()


@pytest.mark.parametrize("cut_bytes", [0, 1, 200, 1000, 5000])
def test_every_whole_file_may_be_cut_in_a_run_that_was_killed(
    run: WrittenRun, cut_bytes: int
) -> None:
    run.rewrite_run(ended_s=None)
    run.add_report("JetsamEvent-1.ips", jetsam_report())
    keep = {run.paths.run, run.paths.plan}
    for path in sorted(run.root.rglob("*")):
        if path.is_file() and path not in keep:
            path.write_bytes(path.read_bytes()[:cut_bytes])
    assert remake(run.root).exit_code == 4


def test_only_what_is_derived_is_written(run: WrittenRun) -> None:
    before = {path for path in run.root.rglob("*") if path.is_file()}
    remake(run.root)
    new = {path for path in run.root.rglob("*") if path.is_file()} - before
    paths = run.paths
    assert new == {
        paths.junit,
        paths.summary_json,
        paths.summary_md,
        paths.html,
        run.device.verdict,
    }
