"""Hand-made sessions: a phone's raw reports, its exits and its records, and the cause they give.

The reports are written as iOS writes them and go through parser, attribution and verdict.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from orchestrator.evidence.classify import classify
from orchestrator.evidence.parse import parse_report
from orchestrator.runlog.documents import AppExit, EvidenceDocument, LaunchWindow
from orchestrator.verdict.judge import judge
from tests.verdict.host_side import case_of, check_of, encode, evidence_of
from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import BOOT_S, LAUNCH, LIMIT_BYTES, MIB, PID, Row, Spec

if TYPE_CHECKING:
    from orchestrator.runlog.documents import VerdictDocument

UUID = "5f3c1c1e-8c5e-3d6f-9a3b-0d2f6f1f4a77"
PAGE_BYTES = 16384
MIDDLE = 150  # records; the app is decoding
KILLED = AppExit(pid=PID, at_s=BOOT_S + 2, signal=9)
LEFT = AppExit(pid=PID, at_s=BOOT_S + 5, exit_code=0)


def stamp(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S.00 +0000")


def document(header: Row, body: Row) -> bytes:
    return f"{json.dumps(header)}\n{json.dumps(body)}".encode()


def jetsam(
    at_s: float,
    *,
    reason: str = "per-process-limit",
    name: str = "harness",
    pid: int = PID,
    uuid: str = UUID,
    mib: int = 2860,
    others: tuple[Row, ...] = (),
) -> bytes:
    victim = {
        "name": name,
        "pid": pid,
        "uuid": uuid,
        "rpages": mib * MIB // PAGE_BYTES,
        "reason": reason,
        "states": ["frontmost"],
        "killDelta": 1,
    }
    body: Row = {
        "bug_type": "298",
        "product": "iPhone16,1",
        "date": stamp(at_s),
        "memoryStatus": {"pageSize": PAGE_BYTES},
        "largestProcess": "harness",
        "processes": [*others, victim],
    }
    header: Row = {"bug_type": "298", "timestamp": stamp(at_s), "incident_id": str(at_s)}
    return document(header, body)


def crash(at_s: float, *, code: int = 0, namespace: str = "SIGNAL", **body: object) -> bytes:
    header: Row = {
        "bug_type": "309",
        "timestamp": stamp(at_s),
        "app_name": "harness",
        "name": "harness",
        "incident_id": f"crash {at_s}",
        "slice_uuid": UUID,
    }
    fields: Row = {
        "pid": PID,
        "procName": "harness",
        "modelCode": "iPhone16,1",
        "captureTime": stamp(at_s),
        "exception": {"type": "EXC_CRASH", "signal": "SIGKILL"},
        "termination": {"namespace": namespace, "code": code, "flags": 0},
        **body,
    }
    return document(header, fields)


def verdict_of(
    reports: list[bytes],
    evidence: EvidenceDocument,
    *,
    records: list[Row] | None = None,
    footprint_bytes: int | None = None,
) -> VerdictDocument:
    """Judge a session; without records of its own it is cut in the middle of a good run."""
    rows = App().run()[:MIDDLE] if records is None else records
    rows[0]["lc_uuid"] = UUID
    if footprint_bytes is not None:
        rows.append(sample_after(rows[-1], footprint_bytes))
    classified = [
        classify(
            parse_report(raw, f"report-{number}.ips"),
            app_name="harness",
            lc_uuid=UUID,
            launches=evidence.launches,
            clock_offset_s=evidence.clock_offset_s or 0.0,
            clock_offset_end_s=evidence.clock_offset_end_s,
            tolerance_s=60.0,
        )
        for number, raw in enumerate(reports)
    ]
    case = case_of(evidence=evidence, reports=classified)
    return judge(case, encode(rows)).verdict


def sample_after(row: Row, footprint_bytes: int) -> Row:
    app = App()
    app.footprint = footprint_bytes
    sample = app.write("sample", **app.sample_fields())
    return {**sample, "seq": int(str(row["seq"])) + 1, "t_ns": int(str(row["t_ns"])) + 1000}


def of(verdict: VerdictDocument) -> tuple[str, str]:
    return verdict.outcome, verdict.cause


def dead(**fields: object) -> EvidenceDocument:
    return evidence_of(exits=[KILLED], **fields)


def test_kill_with_its_file() -> None:
    verdict = verdict_of([jetsam(BOOT_S + 3)], dead())
    assert of(verdict) == ("FAIL", "jetsam_per_process_limit")


def test_kill_without_a_file_near_the_limit() -> None:
    verdict = verdict_of([], dead(), footprint_bytes=int(LIMIT_BYTES * 0.95))
    assert of(verdict) == ("FAIL", "killed_unconfirmed")
    assert "No report confirms it" in verdict.explanation


def test_kill_without_a_file_far_from_the_limit_says_what_was_looked_at() -> None:
    verdict = verdict_of([jetsam(BOOT_S + 3, name="mediaserverd", pid=77, uuid="0" * 36)], dead())
    assert of(verdict) == ("FAIL", "unexplained_exit")
    for word in ("reports (none of this app, 1 others)", "signal 9", "reboot", "breadcrumb"):
        assert word in verdict.explanation


def test_file_without_a_kill_is_refuted_by_the_clean_exit() -> None:
    verdict = verdict_of([jetsam(BOOT_S + 3)], evidence_of(exits=[LEFT]), records=App().run())
    assert of(verdict) == ("PASS", "completed")


def test_file_without_a_kill_is_refuted_by_the_living_process() -> None:
    alive = evidence_of(exits=[], alive_at_end=True)
    verdict = verdict_of([jetsam(BOOT_S + 3)], alive, records=App().run())
    assert of(verdict) == ("PASS", "completed")


def test_two_kills_in_one_second_name_the_app_and_not_its_neighbour() -> None:
    other: Row = {
        "name": "PhotosApp",
        "pid": 90,
        "uuid": "1" * 36,
        "rpages": 1000,
        "reason": "vm-pageshortage",
        "states": ["suspended"],
        "killDelta": 0,
    }
    files = [jetsam(BOOT_S + 3, others=(other,)), jetsam(BOOT_S + 3, name="news", pid=91, uuid="")]
    assert of(verdict_of(files, dead())) == ("FAIL", "jetsam_per_process_limit")


def test_two_deaths_of_the_app_give_the_cause_of_the_last() -> None:
    launches = [
        LaunchWindow(number=1, pid=600, launch=None, started_s=BOOT_S - 9, ended_s=BOOT_S - 1),
        LaunchWindow(number=2, pid=PID, launch=LAUNCH, started_s=BOOT_S, ended_s=BOOT_S + 3),
    ]
    files = [jetsam(BOOT_S - 1, pid=600), jetsam(BOOT_S + 3, reason="vm-pageshortage", mib=900)]
    verdict = verdict_of(files, dead(launches=launches))
    assert of(verdict) == ("ERROR", "jetsam_system_pressure")


def test_a_daemons_jetsam_in_the_window_is_none_of_ours() -> None:
    report = jetsam(BOOT_S + 2, name="assistantd", pid=321, uuid="2" * 36)
    verdict = verdict_of([report], evidence_of(), records=App().run())
    assert of(verdict) == ("PASS", "completed")


def test_yesterdays_crash_pulled_today_is_none_of_this_soak() -> None:
    verdict = verdict_of([crash(BOOT_S - 86_400)], evidence_of(), records=App().run())
    assert of(verdict) == ("PASS", "completed")


@pytest.mark.parametrize("offset_s", [420.0, -420.0])
def test_a_clock_seven_minutes_off_is_corrected(offset_s: float) -> None:
    late = jetsam(BOOT_S + 3 + offset_s)
    assert of(verdict_of([late], dead(clock_offset_s=offset_s)))[1] == "jetsam_per_process_limit"
    uncorrected = of(verdict_of([jetsam(BOOT_S + 3)], dead(clock_offset_s=offset_s)))
    assert uncorrected[1] == "unexplained_exit"


def test_a_reboot_in_mid_run_is_the_phones() -> None:
    assert of(verdict_of([], dead(rebooted=True))) == ("ERROR", "device_rebooted")


def test_a_reboot_is_told_by_the_boot_times_of_two_launches() -> None:
    first, second = App().run()[:MIDDLE], App().run()[:MIDDLE]
    first[0]["boot_time_s"], second[0]["boot_time_s"] = BOOT_S - 5000, BOOT_S - 20
    for row in second:
        row["launch"] = "22222222-d9cb-469f-a165-70867728950e"
    case = case_of(evidence=evidence_of(exits=[]))
    verdict = judge(case, [*encode(first), *encode(second)]).verdict
    assert of(verdict) == ("ERROR", "device_rebooted")


def test_unplugged_and_back_with_the_app_alive_is_whole() -> None:
    back = evidence_of(exits=[], alive_at_end=True, cause_hint="device_lost", error="cable")
    assert of(verdict_of([], back, records=App().run())) == ("PASS", "completed")


def test_unplugged_and_not_back_is_the_labs() -> None:
    lost = evidence_of(exits=[], journal_pulled=False, cause_hint="device_lost", error="cable")
    assert of(verdict_of([], lost)) == ("ERROR", "device_lost")


def suspended_records() -> list[Row]:
    app = App()
    app.run()
    app.records = app.records[:MIDDLE]
    app.write("lifecycle", event="background", phase="decode", origin="phone")
    return app.records


def test_suspended_by_auto_lock_is_no_hang() -> None:
    silent = dead(cause_hint="hang", killed_by_host=True)
    assert of(verdict_of([], silent, records=suspended_records())) == ("ERROR", "foreground_lost")
    asleep = evidence_of(exits=[], alive_at_end=True)
    assert of(verdict_of([], asleep, records=suspended_records())) == ("ERROR", "foreground_lost")


def test_silent_in_the_foreground_is_a_hang() -> None:
    verdict = verdict_of([], dead(cause_hint="hang", killed_by_host=True))
    assert of(verdict) == ("FAIL", "hang")
    hang = next(check for check in verdict.checks if check.id == "hang.none")
    assert hang.result == "fail"


def test_a_thermal_kill_is_no_crash() -> None:
    report = crash(BOOT_S + 3, code=0xC00010FF, namespace="SPRINGBOARD")
    verdict = verdict_of([report], dead())
    assert of(verdict) == ("FAIL", "thermal_kill")
    assert next(c for c in verdict.checks if c.id == "crash.none").result == "pass"


def test_a_watchdog_kill_is_told_from_a_crash() -> None:
    explanation = "scene-update watchdog transgression: exhausted real (wall clock) time allowance"
    report = crash(
        BOOT_S + 3,
        code=0x8BADF00D,
        namespace="FRONTBOARD",
        termination={
            "namespace": "FRONTBOARD",
            "code": 0x8BADF00D,
            "flags": 6,
            "reasons": [explanation],
        },
    )
    assert of(verdict_of([report], dead())) == ("FAIL", "watchdog")


def test_our_own_kill_answered_slowly_is_neither_crash_nor_watchdog() -> None:
    reasons = ["process-exit watchdog transgression: Failed to terminate gracefully after 5.0s"]
    report = crash(
        BOOT_S + 3,
        termination={
            "namespace": "FRONTBOARD",
            "code": 0x8BADF00D,
            "flags": 6,
            "reasons": reasons,
        },
    )
    stopped = dead(stopped_by_host=True, killed_by_host=True)
    verdict = verdict_of([report], stopped, footprint_bytes=int(LIMIT_BYTES * 0.95))
    assert verdict.cause not in {"crash", "watchdog", "hang", "killed_unconfirmed"}
    assert {c.result for c in verdict.checks if c.id in {"crash.none", "hang.none"}} == {"pass"}


def test_a_crash_with_its_file() -> None:
    report = crash(
        BOOT_S + 3,
        exception={"type": "EXC_BREAKPOINT", "signal": "SIGTRAP"},
        termination={"namespace": "SIGNAL", "code": 5, "flags": 0},
    )
    evidence = evidence_of(exits=[AppExit(pid=PID, at_s=BOOT_S + 2, signal=5)])
    assert of(verdict_of([report], evidence)) == ("FAIL", "crash")


def test_system_pressure_below_four_fifths_of_the_limit_is_the_labs() -> None:
    report = jetsam(BOOT_S + 3, reason="vm-pageshortage", mib=900)
    assert of(verdict_of([report], dead())) == ("ERROR", "jetsam_system_pressure")
    near = verdict_of([report], dead(), footprint_bytes=int(LIMIT_BYTES * 0.85))
    assert of(near) == ("FAIL", "jetsam_system_pressure")


@pytest.mark.parametrize(
    ("hint", "cause"),
    [
        ("not_ready", "not_ready"),
        ("install_failed", "install_failed"),
        ("device_locked", "device_locked"),
    ],
)
def test_a_session_that_never_began_names_its_reason(hint: str, cause: str) -> None:
    evidence = evidence_of(
        launches=[], exits=[], cause_hint=hint, error="gate: no", journal_pulled=False
    )
    verdict = judge(case_of(evidence=evidence), []).verdict
    assert of(verdict) == ("ERROR", cause)


def test_an_exit_without_a_farewell_is_early() -> None:
    assert of(verdict_of([], evidence_of(exits=[LEFT]))) == ("FAIL", "early_exit")


def test_interrupted_is_aborted() -> None:
    evidence = evidence_of(exits=[LEFT], stopped_by_host=True)
    case = case_of(evidence=evidence, interrupted_by="SIGINT")
    assert of(judge(case, encode(App().run()[:MIDDLE])).verdict) == ("ABORTED", "user_aborted")


def test_records_that_stop_with_nobody_watching_are_lost() -> None:
    assert of(verdict_of([], evidence_of(exits=[]))) == ("ERROR", "telemetry_lost")


def test_a_scenarios_visit_to_the_background_excuses_nothing() -> None:
    spec = Spec(background_at_tokens=frozenset({60}))
    app = App(spec)
    app.run()
    start = next(i for i, row in enumerate(app.records) if row["kind"] == "lifecycle")
    case = case_of(spec, evidence=dead())
    judgement = judge(case, encode(app.records[: start + 1]))
    assert of(judgement.verdict) == ("FAIL", "unexplained_exit")
    assert check_of(judgement, "soak.completed").result == "fail"
