from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.evidence.classify import LaunchWindow, classify, names_match
from orchestrator.evidence.parse import parse_report
from orchestrator.runlog.documents import LaunchWindow as LaunchDocument
from tests.evidence.factory import (
    APP,
    FIXTURES,
    FUZZ,
    NOON_S,
    UUID,
    Window,
    crash,
    jetsam,
    process,
    report,
)

if TYPE_CHECKING:
    from orchestrator.evidence.classified import ClassifiedReport

ELSE = "00000000-0000-0000-0000-000000000000"
HOUR_S = 3600.0


def classified(
    content: bytes,
    *launches: LaunchWindow,
    app_name: str = APP,
    lc_uuid: str | None = None,
    clock_offset_s: float = 0.0,
    end_s: float | None = None,
) -> ClassifiedReport:
    return classify(
        parse_report(content, "report.ips"),
        app_name=app_name,
        lc_uuid=lc_uuid,
        launches=launches or (Window(),),
        clock_offset_s=clock_offset_s,
        tolerance_s=30.0,
        clock_offset_end_s=end_s,
    )


def test_the_app_killed_in_its_launch_is_ours() -> None:
    found = classified(jetsam(process()), Window(pid=501))
    assert (found.kind, found.ours, found.in_window, found.launch) == ("jetsam", True, True, 1)
    assert (found.reason, found.foreground) == ("per-process-limit", True)
    assert (found.footprint_bytes, found.pid, found.at_s) == (65536 * 16384, 501, NOON_S)
    assert found.summary == "SoakHarness was killed by jetsam at 1024 MiB: per-process-limit"


def test_another_victim_is_not_ours_although_the_app_is_listed_and_largest() -> None:
    alive = {key: value for key, value in process().items() if key != "reason"}
    found = classified(jetsam(process("assetsd", pid=88, uuid=ELSE), alive, largestProcess=APP))
    assert (found.ours, found.in_window) == (False, True)
    assert found.summary.startswith("assetsd was killed")


def test_the_app_is_found_among_several_victims() -> None:
    found = classified(jetsam(process("assetsd", pid=88, killDelta=1), process(killDelta=2)))
    assert (found.ours, found.pid) == (True, 501)
    assert found.summary.endswith("and 1 more")


def test_the_same_name_at_another_time_is_not_ours() -> None:
    later = Window(started_s=NOON_S + HOUR_S, ended_s=None)
    found = classified(jetsam(process()), later)
    assert (found.ours, found.in_window, found.launch) == (False, False, None)


def test_the_uuid_alone_is_not_enough_at_another_time() -> None:
    later = Window(started_s=NOON_S + HOUR_S, ended_s=None)
    found = classified(jetsam(process("renamed")), later, lc_uuid=UUID.upper())
    assert (found.ours, found.in_window, found.launch) == (False, False, None)


def test_the_uuid_decides_and_not_the_name() -> None:
    assert classified(jetsam(process("renamed")), lc_uuid=UUID.upper()).ours


def test_a_name_with_another_uuid_is_another_build() -> None:
    assert classified(jetsam(process(pid=None))).ours
    assert not classified(jetsam(process(pid=None)), lc_uuid=ELSE).ours


def test_a_name_with_a_pid_that_nobody_launched_is_not_ours() -> None:
    assert not classified(jetsam(process(pid=77)), Window(pid=501)).ours


def test_a_name_with_another_uuid_is_another_build_even_with_our_pid() -> None:
    assert not classified(jetsam(process(pid=501)), Window(pid=501), lc_uuid=ELSE).ours


def test_our_uuid_under_a_pid_that_nobody_launched_is_the_run_befores() -> None:
    old, new = process(pid=400), process(pid=501, reason=None)
    assert not classified(jetsam(old, new), Window(pid=501), lc_uuid=UUID).ours


def test_of_a_relaunched_app_the_pid_picks_the_launch() -> None:
    windows = (Window(number=1, pid=400), Window(number=2, pid=501))
    found = classified(jetsam(process(pid=400), process(pid=501, reason=None)), *windows)
    assert (found.ours, found.pid, found.launch) == (True, 400, 1)


def test_a_phone_that_set_its_clock_in_mid_run_is_understood() -> None:
    kept = classified(jetsam(process()), clock_offset_s=HOUR_S, end_s=HOUR_S)
    set_right = classified(jetsam(process()), clock_offset_s=HOUR_S, end_s=0.0)
    assert (kept.ours, set_right.ours, set_right.at_s) == (False, True, NOON_S)


@pytest.mark.parametrize(
    ("header", "body", "why"),
    [
        ({"os_version": "Watch OS 11.5 (22T572)"}, {}, "a companion device's report"),
        ({"platform": 4}, {}, "a companion device's report"),
        ({}, {"modelCode": "Watch7,3"}, "a companion device's report"),
        ({"platform": 7}, {}, "a simulator's report"),
        ({}, {"isSimulated": 1}, "a simulator's report"),
        ({}, {"procPath": "/Users/x/Library/Developer/CoreSimulator/D/X"}, "a simulator's report"),
        ({}, {"modelCode": "Mac14,2"}, "a Mac's report"),
    ],
)
def test_reports_of_other_devices_are_never_ours(
    header: dict[str, object], body: dict[str, object], why: str
) -> None:
    content = report("309", {"pid": 501, **body}, **{"name": APP, **header})
    found = classified(content)
    assert (found.ignored, found.ours, found.in_window) == (why, False, True)


def test_a_watchs_panic_restarts_no_phone() -> None:
    assert not classified(report("210", {"product": "Watch7,3", "panicString": "x"})).ours


def test_a_thermal_kill_is_marked() -> None:
    found = classified(crash(termination={"code": 0xC00010FF}))
    assert (found.kind, found.reason, found.thermal_kill) == ("crash", "thermal", True)
    assert not classified(crash()).thermal_kill


def test_the_clock_of_the_phone_is_corrected() -> None:
    fast = classified(jetsam(process()), Window(), clock_offset_s=HOUR_S)
    assert (fast.in_window, fast.at_s) == (False, NOON_S - HOUR_S)
    early = Window(started_s=NOON_S - HOUR_S - 60, ended_s=NOON_S - HOUR_S)
    assert classified(jetsam(process()), early, clock_offset_s=HOUR_S).in_window


@pytest.mark.parametrize(("ended_s", "inside"), [(NOON_S - 30, True), (NOON_S - 31, False)])
def test_the_tolerance_is_added_after_the_launch(ended_s: float, *, inside: bool) -> None:
    assert classified(jetsam(process()), Window(ended_s=ended_s)).in_window is inside


@pytest.mark.parametrize(("started_s", "inside"), [(NOON_S + 5, True), (NOON_S + 6, False)])
def test_a_report_from_before_the_launch_is_the_run_befores(
    started_s: float, *, inside: bool
) -> None:
    found = classified(jetsam(process()), Window(started_s=started_s, ended_s=None))
    assert found.in_window is inside


def test_the_pid_picks_the_launch() -> None:
    windows = (Window(number=1, pid=500), Window(number=2, pid=501))
    assert classified(jetsam(process(pid=501)), *windows).launch == 2
    assert classified(jetsam(process(pid=499)), *windows).launch is None


def test_of_two_of_our_victims_the_one_that_was_launched_counts() -> None:
    found = classified(jetsam(process(pid=400, killDelta=1), process(pid=501, killDelta=2)))
    assert (found.pid, found.launch) == (501, 1)


def test_without_a_pid_only_a_single_launch_can_be_meant() -> None:
    assert classified(jetsam(process(pid=None)), Window()).launch == 1
    two = (Window(number=1), Window(number=2))
    assert classified(jetsam(process(pid=None)), *two).launch is None


def test_a_time_without_a_zone_is_in_no_window() -> None:
    found = classified(report("298", {"processes": [process()]}, timestamp="2026-01-10 12:00:00"))
    assert (found.ours, found.in_window, found.at_s) == (False, False, None)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (crash(), "crash"),
        (crash(termination={"code": 0x8BADF00D}), "watchdog"),
        (
            crash(termination={"code": 0x8BADF00D, "reasons": ["WatchdogEvent: process-exit"]}),
            "other",
        ),
        (crash(termination={"code": 0xC00010FF}), "crash"),
        (crash(isNonFatal=1), "other"),
        (report("385", {"exception": {"subtype": "MEMORY"}}, name=APP), "exc_resource"),
        (b'{"bug_type":"206","name":"SoakHarness"}\nAction taken: Process killed', "crash"),
        (report("210", {"panicString": "panic"}), "panic"),
        (report("202", {"CPU": 1}, name=APP), "other"),
        (b"", "unparsed"),
    ],
)
def test_every_report_has_its_kind(content: bytes, kind: str) -> None:
    assert classified(content).kind == kind


@pytest.mark.parametrize(
    ("content", "fatal"),
    [
        (jetsam(process()), True),
        (crash(), True),
        (crash(isNonFatal=1), False),
        (report("385", {"termination": {"code": 7}}, name=APP), True),
        (report("385", {"exception": {"subtype": "MEMORY"}}, name=APP), False),
        (report("777", {}), None),
    ],
)
def test_a_report_tells_whether_the_process_ended(content: bytes, *, fatal: bool | None) -> None:
    assert classified(content).fatal is fatal


def test_a_cut_crash_report_is_still_ours_by_its_header() -> None:
    found = classified(crash()[:-20])
    assert (found.kind, found.ours, found.in_window, found.reason) == (
        "unparsed",
        True,
        True,
        "truncated",
    )


def test_a_panic_within_a_launch_takes_the_app_with_it() -> None:
    found = classified(report("210", {"panicString": "panic(cpu 1)"}))
    assert (found.ours, found.in_window) == (True, True)
    assert found.summary == "the phone restarted: panic(cpu 1)"


def test_a_panic_outside_every_launch_is_old() -> None:
    later = Window(started_s=NOON_S + HOUR_S, ended_s=None)
    found = classified(report("210", {"panicString": "panic(cpu 1)"}), later)
    assert (found.ours, found.in_window) == (False, False)


def test_the_run_logs_launches_are_launch_windows() -> None:
    launch = LaunchDocument(number=3, pid=501, launch=None, started_s=NOON_S - 9, ended_s=None)
    assert classified(jetsam(process()), launch).launch == 3


def test_hostile_names_give_a_printable_sentence() -> None:
    hostile = (FIXTURES / "J22_names_with_xml_hostile_chars.ips").read_bytes()
    assert classified(hostile).summary.isprintable()
    assert len(classified(jetsam(process("x" * 5000))).summary) <= 160


LONG = "SoakHarnessWithAVeryLongNameIndeedX"


@pytest.mark.parametrize(
    ("reported", "app_name", "same"),
    [
        (APP, APP, True),
        (LONG[:15], LONG, True),
        (LONG[:16], LONG, True),
        (LONG[:31], LONG, True),
        (LONG, LONG[:32], True),
        (LONG[:10], LONG, False),  # short names are never cut
        (LONG[:20], LONG, False),  # nor at any other length
        ("SoakHarness2", APP, False),
        ("Ünïcödé-Här", "Ünïcödé-Härness-und-mehr", True),  # 15 bytes
        ("Ünïcödé-Hürness", "Ünïcödé-Hürness-und-mehr", False),  # 20 bytes
        ("Harness-Übung-\ufffd", "Harness-Übung-Übung", True),  # cut within a character
        ("", APP, False),
        (None, APP, False),
        (APP, "", False),
    ],
)
def test_names_match_where_the_kernel_cut_one(
    reported: str | None, app_name: str, *, same: bool
) -> None:
    assert names_match(reported, app_name) is same


@FUZZ
@given(content=st.binary(max_size=64), name=st.text(), offset_s=st.floats(-1e6, 1e6))
def test_no_bytes_raise(content: bytes, name: str, offset_s: float) -> None:
    classified(jetsam(process(name)) + content, app_name=name, clock_offset_s=offset_s)
