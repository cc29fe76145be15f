from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from orchestrator.domain.errors import RunDirectoryError
from orchestrator.report.raw_reports import read_raw_reports
from orchestrator.report.rundir import PhoneRecord, read_phone, read_run
from orchestrator.runlog.manifest import write_manifest
from tests.report.runs import (
    APP,
    DIRECTORY,
    EVIDENCE,
    LINES,
    PHONE,
    ROWS,
    UDID,
    WrittenRun,
    jetsam_report,
    write_run,
)
from tests.verdict.host_side import encode

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.evidence.classified import ClassifiedReport


@pytest.fixture
def run(tmp_path: Path) -> WrittenRun:
    return write_run(tmp_path / "run")


def phone_of(run: WrittenRun) -> PhoneRecord:
    return read_phone(read_run(run.root), DIRECTORY, UDID)


def classified(phone: PhoneRecord, app_name: str) -> tuple[ClassifiedReport, ...]:
    return tuple(report for _, report in read_raw_reports(phone, app_name))


def test_a_directory_that_is_no_run_names_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"is not a run directory: run\.json is missing"):
        read_run(tmp_path)
    with pytest.raises(RunDirectoryError, match="nowhere is missing"):
        read_run(tmp_path / "nowhere")


def test_a_finished_run_without_its_plan_cannot_be_read(run: WrittenRun) -> None:
    run.paths.plan.unlink()
    with pytest.raises(RunDirectoryError, match=r"plan\.json"):
        read_run(run.root)


def test_a_run_that_was_killed_before_its_plan_has_no_phones(run: WrittenRun) -> None:
    run.paths.plan.unlink()
    run.rewrite_run(ended_s=None)
    record = read_run(run.root)
    assert record.plan is None
    assert not record.finished


def test_differences_from_the_manifest_go_to_the_phone_they_bear_on(run: WrittenRun) -> None:
    write_manifest(run.root)
    assert read_run(run.root).differences_of(DIRECTORY) == ()
    run.device.telemetry.write_bytes(b"")
    run.paths.events.write_bytes(b"")
    record = read_run(run.root)
    telemetry = f"devices/{DIRECTORY}/telemetry.ndjson"
    assert record.differences_of(DIRECTORY) == (telemetry, "events.ndjson")
    assert record.differences_of("another") == ("events.ndjson",)


def test_a_finished_run_whose_manifest_is_gone_was_tampered_with(run: WrittenRun) -> None:
    assert read_run(run.root).differences_of(DIRECTORY) == ("MANIFEST.sha256",)
    run.rewrite_run(ended_s=None)  # a killed run never had one
    assert read_run(run.root).differences_of(DIRECTORY) is None


def test_the_merged_file_stands_as_it_is(run: WrittenRun) -> None:
    run.device.telemetry.write_bytes(LINES[0] + b"half a li")
    assert list(phone_of(run).lines()) == [LINES[0], b"half a li"]


def test_without_the_merged_file_stream_and_journal_are_merged(run: WrittenRun) -> None:
    run.device.telemetry.unlink()
    run.attempt.journal(1).write_bytes(b"".join(LINES[:50]))
    assert tuple(phone_of(run).lines()) == LINES


def test_without_evidence_the_hosts_remarks_are_read(run: WrittenRun) -> None:
    run.attempt.evidence.unlink()
    evidence = phone_of(run).evidence
    assert evidence is not None
    assert [(w.pid, w.started_s, w.ended_s) for w in evidence.launches] == [
        (w.pid, w.started_s, w.ended_s) for w in EVIDENCE.launches
    ]


@pytest.mark.parametrize("name", ["device", "evidence"])
def test_documents_that_are_damaged_count_as_missing(run: WrittenRun, name: str) -> None:
    path = {"device": run.device.device, "evidence": run.attempt.evidence}[name]
    path.write_bytes(path.read_bytes()[:-20])
    phone = phone_of(run)
    assert (phone.device is None) is (name == "device")
    assert phone.evidence is not None


def test_a_phone_that_was_never_touched_has_nothing(run: WrittenRun) -> None:
    phone = read_phone(read_run(run.root), "another-00000002", "another")
    assert (phone.device, phone.evidence, phone.span_s) == (None, None, None)
    assert list(phone.lines()) == []
    assert phone.files() == ()
    assert classified(phone, APP) == ()


def test_the_hello_is_read_from_the_first_record_only(run: WrittenRun) -> None:
    found = phone_of(run).hello()
    assert found is not None
    assert found.nonce == PHONE.nonce
    for line in (b"", b"torn", LINES[1]):
        run.device.telemetry.write_bytes(line)
        assert phone_of(run).hello() is None


def test_reports_are_read_again_and_tied_to_the_launch(run: WrittenRun) -> None:
    run.add_report("Retired/JetsamEvent-1.ips", jetsam_report())
    run.add_report("JetsamEvent-1.ips.synced", jetsam_report())
    run.add_report("empty.ips", b"")
    found = {report.file.rpartition("/")[2]: report for report in classified(phone_of(run), APP)}
    assert set(found) == {"JetsamEvent-1.ips.synced", "empty.ips"}
    kill = found["JetsamEvent-1.ips.synced"]
    assert (kill.ours, kill.in_window, kill.launch) == (True, True, 1)
    assert kill.file == f"devices/{DIRECTORY}/attempts/1/reports/JetsamEvent-1.ips.synced"
    assert found["empty.ips"].kind == "unparsed"


def test_the_phones_clock_is_corrected_by_the_evidence_else_by_the_device(run: WrittenRun) -> None:
    run.add_report("JetsamEvent-1.ips", jetsam_report(at="2023-11-14 23:14:20.00 +0000"))
    assert not classified(phone_of(run), APP)[0].ours
    run.rewrite_evidence(clock_offset_s=3600.0)
    assert classified(phone_of(run), APP)[0].ours


def test_the_uuid_of_the_hello_ties_a_report_whose_name_differs(run: WrittenRun) -> None:
    run.add_report("JetsamEvent-1.ips", jetsam_report(name="x", uuid="AB-CD"))
    assert not classified(phone_of(run), APP)[0].ours
    run.device.telemetry.write_bytes(encode([{**ROWS[0], "lc_uuid": "abcd"}])[0])
    assert classified(phone_of(run), APP)[0].ours


def test_the_span_reaches_from_the_first_launch_to_the_last_end(run: WrittenRun) -> None:
    assert phone_of(run).span_s == 60.0
    (launch,) = EVIDENCE.launches
    run.rewrite_evidence(launches=[structs.replace(launch, ended_s=None)])
    assert phone_of(run).span_s is None


def test_files_are_named_relative_to_the_run(run: WrittenRun) -> None:
    files = phone_of(run).files()
    assert f"devices/{DIRECTORY}/telemetry.ndjson" in files
    assert f"devices/{DIRECTORY}/attempts/1/launches/1/journal.ndjson" in files
