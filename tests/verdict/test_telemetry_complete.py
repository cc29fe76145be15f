"""What is missing or changed in telemetry is found; a phone that the lab cut off is excused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from orchestrator.runlog.documents import AppExit, LaunchWindow
from orchestrator.verdict.judge import judge
from tests.verdict.host_side import case_of, check_of, encode, evidence_of
from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import BOOT_S, PID, Spec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.runlog.documents import CheckDocument

OTHER = "7c9e6679-7425-40de-944b-e07fc1f90ae7"


def complete(lines: Iterable[bytes], **fields: object) -> CheckDocument:
    return check_of(judge(case_of(**fields), lines), "telemetry.complete")  # type: ignore[arg-type]


def healthy() -> list[bytes]:
    return encode(App().run())


def changed(line: bytes, **fields: object) -> bytes:
    return json.dumps({**json.loads(line), **fields}, separators=(",", ":")).encode() + b"\n"


def test_whole_telemetry_counts_its_records() -> None:
    check = complete(healthy())
    assert (check.result, check.value, check.unit) == ("pass", len(healthy()), "records")


@pytest.mark.parametrize("place", [1, 40, -2])
def test_a_line_that_is_missing_is_a_gap(place: int) -> None:
    lines = healthy()
    del lines[place]
    check = complete(lines)
    assert check.result == "fail"
    assert "follows record" in (check.reason or "")


@pytest.mark.parametrize("line", [b"not json\n", b"\n", b"{}\n", b"\xff\xfe\n", b'{"kind":"x"}\n'])
def test_a_line_that_is_no_record_is_found(line: bytes) -> None:
    lines = healthy()
    lines.insert(20, line)
    check = complete(lines)
    assert (check.result, check.seq) == ("fail", 20)
    assert "a line is not a record" in (check.reason or "")


def test_a_line_changed_in_a_harmless_field_breaks_the_chain() -> None:
    lines = healthy()
    lines[3] = changed(lines[3], channel="uikit")
    check = complete(lines)
    assert (check.result, check.seq) == ("fail", 32)


def test_a_line_whose_bytes_alone_differ_breaks_the_chain() -> None:
    lines = healthy()
    lines[3] = lines[3].replace(b'"kind":', b'"kind": ')
    assert complete(lines).result == "fail"


def test_a_run_without_chains_is_found() -> None:
    lines = encode(App().run(), chain_every=1 << 40)
    check = complete(lines)
    assert check.result == "fail"
    assert "64 lines without a chain" in (check.reason or "")


def test_a_chain_on_every_64th_record_is_enough() -> None:
    assert complete(encode(App().run(), chain_every=64)).result == "pass"


def test_a_farewell_without_a_chain_is_found() -> None:
    lines = healthy()
    bye = json.loads(lines[-1])
    del bye["chain"]
    lines[-1] = json.dumps(bye, separators=(",", ":")).encode() + b"\n"
    assert "no chain" in (complete(lines).reason or "")


def test_a_torn_last_line_is_found() -> None:
    lines = healthy()
    assert complete([*lines[:-1], lines[-1][:-1]]).reason == "the last line is torn"
    assert complete([*lines[:-1], lines[-1][:20]]).result == "fail"


def test_a_launch_must_begin_with_its_hello() -> None:
    assert "does not begin with its hello" in (complete(healthy()[1:]).reason or "")


def test_a_launch_that_the_host_did_not_start_is_found() -> None:
    window = LaunchWindow(number=1, pid=PID, launch=OTHER, started_s=BOOT_S, ended_s=None)
    check = complete(healthy(), evidence=evidence_of(launches=[window]))
    assert "the host did not start" in (check.reason or "")


def test_records_after_the_farewell_are_found() -> None:
    records = App().run()
    records.append(dict(records[-2]))
    assert "after its farewell" in (complete(encode(records)).reason or "")


def test_records_that_differ_between_stream_and_journal_are_found() -> None:
    check = complete(healthy(), evidence=evidence_of(differing_records=2))
    assert check.reason == "2 records differ between stream and journal"


def test_files_that_differ_from_the_manifest_are_found() -> None:
    check = complete(healthy(), manifest_differences=["devices/a/telemetry.ndjson"])
    assert check.reason == "1 files differ from the manifest: devices/a/telemetry.ndjson"


@pytest.mark.parametrize("kind", ["sample", "heartbeat"])
def test_periodic_records_that_stop_are_found(kind: str) -> None:
    app = App(Spec(stop_after=8000))
    records = app.run()
    late = [row for row in records if row["kind"] != kind or int(str(row["t_ns"])) < 1_000_000_000]
    check = check_of(judge(case_of(app.spec), encode(late)), "telemetry.complete")
    assert f"no {kind}s for" in (check.reason or "")
    assert check_of(judge(case_of(app.spec), encode(records)), "telemetry.complete").result == (
        "pass"
    )


def test_a_long_silence_is_found_and_a_suspension_is_none() -> None:
    records = App().run()
    for row in records[200:]:
        row["t_ns"] = int(str(row["t_ns"])) + 16_000_000_000
    assert "for 16.0 s" in (complete(encode(records)).reason or "")


def test_telemetry_that_stops_while_the_app_lives_is_found() -> None:
    lines = healthy()[:200]
    check = complete(lines, evidence=evidence_of(exits=[], alive_at_end=True))
    assert "while the app was alive" in (check.reason or "")


def test_telemetry_that_stops_long_before_a_crash_is_found() -> None:
    crash = AppExit(pid=PID, at_s=BOOT_S + 60, signal=11)
    check = complete(healthy()[:200], evidence=evidence_of(exits=[crash]))
    assert "before the app's end" in (check.reason or "")


def test_telemetry_that_reaches_to_a_crash_is_whole() -> None:
    crash = AppExit(pid=PID, at_s=BOOT_S + 2, signal=11)
    assert complete(healthy()[:200], evidence=evidence_of(exits=[crash])).result == "pass"


def test_the_phone_clock_is_corrected_before_it_is_compared() -> None:
    crash = AppExit(pid=PID, at_s=BOOT_S - 3600 + 2, signal=11)
    evidence = evidence_of(exits=[crash], clock_offset_s=3600.0)
    assert complete(healthy()[:200], evidence=evidence).result == "pass"


def test_a_phone_that_the_lab_lost_is_not_blamed_for_the_missing_end() -> None:
    evidence = evidence_of(exits=[], cause_hint="device_lost", error="the phone is gone")
    assert complete(healthy()[:200], evidence=evidence).result == "pass"
