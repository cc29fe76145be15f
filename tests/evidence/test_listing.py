"""The list of `fleet crashlog parse`, trap by trap."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.evidence.digest import digest_lines, total_line
from orchestrator.evidence.listing import Interest, row_of
from orchestrator.evidence.parse import parse_reports
from tests.evidence.factory import APP, FIXTURES, crash, jetsam, process, report

EXPECTED: dict[str, dict[str, Any]] = json.loads((FIXTURES / "expected.json").read_text())
REMARKS = {"note", "must_not_raise", "dedupe_group", "counted_once"}
GIB_PAGES = 65536


def rows(content: bytes, interest: Interest | None = None) -> list[dict[str, Any]]:
    asked = interest or Interest(APP)
    return [row_of(parsed, asked) for parsed in parse_reports(content, "r.ips")]


def row(content: bytes, interest: Interest | None = None) -> dict[str, Any]:
    (only,) = rows(content, interest)
    return only


@pytest.mark.parametrize("name", EXPECTED)
def test_every_fixture_gives_its_expected_values(name: str) -> None:
    found = row((FIXTURES / name).read_bytes())
    expected = {key: value for key, value in EXPECTED[name].items() if key not in REMARKS}
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("bug_type", "body", "kind"),
    [
        ("298", {"processes": []}, "jetsam"),
        ("309", {"pid": 1}, "crash"),
        ("309", {"termination": {"code": 0x8BADF00D}}, "watchdog"),
        ("309", {"termination": {"code": "0x8badf00d"}}, "watchdog"),
        ("309", {"termination": {"reasons": ["domain:10 code:0x8BADF00D x"]}}, "watchdog"),
        ("309", {"termination": {"code": 0xC00010FF}}, "thermal-kill"),
        ("385", {"exception": {"subtype": "MEMORY"}}, "exc-resource-memory"),
        ("385", {"exception": {"subtype": "RESOURCE_TYPE_CPU"}}, "cpu-resource"),
        ("385", {"exception": {"subtype": "WAKEUPS"}}, "wakeups-resource"),
        ("385", {"exception": {"subtype": "THREADS"}}, "other"),
        ("202", {"x": 1}, "cpu-resource"),
        ("206", {"x": 1}, "cpu-resource"),
        ("142", {"x": 1}, "wakeups-resource"),
        ("145", {"x": 1}, "disk-writes-resource"),
        ("210", {"panicString": "panic"}, "panic"),
        ("151", {"string": "x"}, "force-reset"),
        ("115", {"x": 1}, "reset-counter"),
        ("288", {"x": 1}, "stackshot"),
        ("509", {"x": 1}, "stackshot"),
        ("211", {"x": 1}, "analytics"),
        ("308", {"exception": {"signal": "SIGABRT"}}, "other"),
        ("777", {"x": 1}, "other"),
    ],
)
def test_every_type_has_its_kind(bug_type: str, body: dict[str, object], kind: str) -> None:
    found = row(report(bug_type, body))
    assert (found["kind"], found["bug_type"], found["parsed"]) == (kind, bug_type, True)


def test_every_row_has_the_promised_keys() -> None:
    keys = {"file", "kind", "bug_type", "incident", "utc", "parsed", "ignored", "why"}
    for content in (b"", jetsam(process()), crash(), report("210", {}), report("777", {})):
        assert keys <= row(content).keys()


def test_of_several_victims_the_app_is_told_and_the_first_is_named() -> None:
    daemon = process("assetsd", pid=88, rpages=100, killDelta=1, reason="idle-exit")
    found = row(jetsam(process(killDelta=2), daemon, largestProcess="mediaserverd"))
    assert (found["victims"], found["idle_exit"]) == (2, 1)
    assert (found["victim"], found["first_killed"]) == (APP, "assetsd")
    assert (found["largest"], found["app_killed"]) == ("mediaserverd", True)


def test_without_the_app_among_them_the_first_victim_is_told() -> None:
    found = row(jetsam(process("b", pid=2, killDelta=9), process("a", pid=1, killDelta=3)))
    assert (found["victim"], found["app_killed"], found["blame"]) == ("a", False, None)


def test_a_kill_of_nobody_is_listed() -> None:
    found = row(jetsam(process(reason=None)))
    assert (found["victims"], found["victim"], found["app_killed"]) == (0, None, False)


def test_an_empty_reason_is_no_kill() -> None:
    assert row(jetsam(process(reason="")))["app_killed"] is False
    assert row(jetsam(process(reason="", killDelta=4)))["app_killed"] is True


def test_a_relaunched_app_is_told_apart_by_its_pid() -> None:
    killed, alive = process(pid=400), process(pid=501, reason=None)
    assert row(jetsam(killed, alive), Interest(APP))["pid"] == 400
    assert row(jetsam(killed, alive), Interest(APP, 400))["app_killed"] is True
    assert row(jetsam(killed, alive), Interest(APP, 501))["app_killed"] is False


def test_of_two_killed_pids_the_one_asked_for_is_told() -> None:
    both = jetsam(process(pid=400, killDelta=1), process(pid=501, killDelta=2, rpages=7))
    assert row(both, Interest(APP, 501))["rpages"] == 7
    assert row(both, Interest(None, 501))["rpages"] == 7


@pytest.mark.parametrize("length", [15, 16, 31, 32])
def test_a_name_cut_by_the_kernel_is_still_the_app(length: int) -> None:
    name = "SoakHarnessWithAVeryLongNameIndeed"
    found = row(jetsam(process(name[:length])), Interest(name))
    assert (found["app_killed"], found["victim"]) == (True, name[:length])


def test_a_suspended_victim_was_not_in_front() -> None:
    found = row(jetsam(process(states=["suspended"], reason="vm-pageshortage", rpages=9)))
    assert (found["app_killed"], found["foreground"]) == (True, False)
    assert row(jetsam(process(states=["frontmost", "active"])))["foreground"] is True
    assert row(jetsam(process(states=None)))["foreground"] is None


def test_unknown_reasons_are_kept_and_marked() -> None:
    found = row(jetsam(process(reason="neural-pressure")))
    assert (found["reason"], found["reason_known"], found["blame"]) == (
        "neural-pressure",
        False,
        "app",
    )


@pytest.mark.parametrize(
    ("reason", "mib", "product", "blame"),
    [
        ("per-process-limit", 100, "iPhone14,7", "app"),
        ("vm-pageshortage", 1000, "iPhone14,7", "system"),
        ("vm-pageshortage", 2294, "iPhone14,7", "app"),  # 80 % of 2867 MiB is 2293.6
        ("vm-pageshortage", 2293, "iPhone14,7", "system"),
        ("vm-pageshortage", 2944, "iPhone14,7", "system"),  # over 2867: entitled, limit 4096
        ("vm-pageshortage", 3300, "iPhone14,7", "app"),
        ("vm-pageshortage", 2650, "iPhone16,1", "system"),  # limit 3376
        ("vm-pageshortage", 2750, "iPhone16,1", "app"),
        ("vm-compressor-space-shortage", 500, "iPhone99,9", "system"),
    ],
)
def test_system_wide_reasons_are_the_systems_blame_below_80_percent(
    reason: str, mib: int, product: str, blame: str
) -> None:
    content = jetsam(process(reason=reason, rpages=mib * 64), product=product)
    assert row(content)["blame"] == blame


def test_an_app_that_falls_after_a_far_larger_process_is_collateral() -> None:
    app = process(reason="vm-pageshortage", rpages=2400 * 64, killDelta=2)
    giant = process("giant", pid=9, reason="vm-pageshortage", rpages=5000 * 64, killDelta=1)
    later = {**giant, "killDelta": 3}
    assert row(jetsam(app, giant, product="iPhone14,7"))["blame"] == "system"
    assert row(jetsam(app, later, product="iPhone14,7"))["blame"] == "app"


def test_the_reports_own_page_size_counts() -> None:
    found = row(jetsam(process(), memoryStatus={"pageSize": 4096}))
    assert (found["page_size"], found["page_size_assumed"]) == (4096, None)
    assert found["footprint_mib"] == GIB_PAGES * 4096 / 2**20


def test_reports_of_companions_and_simulators_stay_in_the_list() -> None:
    found = row(report("298", {"product": "Watch7,3", "processes": [process()]}))
    assert (found["ignored"], found["why"]) == (True, "a companion device's report")
    assert (found["victim"], found["app_killed"]) == (APP, True)


def test_another_phones_report_is_ignored_where_the_product_is_given() -> None:
    content = jetsam(process(), product="iPhone15,3")
    assert row(content, Interest(APP, None, "iPhone15,3"))["ignored"] is False
    other = row(content, Interest(APP, None, "iPhone16,1"))
    assert (other["ignored"], other["why"]) == (True, "a report of another phone, iPhone15,3")
    assert row(jetsam(process()), Interest(APP, None, "iPhone16,1"))["ignored"] is False


def test_a_naive_time_is_marked() -> None:
    found = row(report("210", {}, timestamp="2026-01-10 01:18:15.51"))
    assert (found["utc"], found["utc_naive"]) == ("2026-01-10T01:18:15.510000Z", True)


def test_a_thermal_kill_tells_its_level() -> None:
    reasons = ["ThermalInfo: (", '"Thermal Level:   12"', '"Thermal State:   critical"']
    found = row(crash(termination={"code": 3221229823, "reasons": reasons}))
    assert (found["kind"], found["code"]) == ("thermal-kill", "0xc00010ff")
    assert (found["thermal"], found["thermal_level"]) == ("critical", 12)


def test_a_quit_that_took_too_long_says_so() -> None:
    reasons = ["explanation:Failed to terminate gracefully after 5.0s"]
    found = row(crash(termination={"code": 0x8BADF00D, "reasons": reasons}))
    assert (found["kind"], found["event"]) == ("watchdog", "process-exit")


@pytest.mark.parametrize(
    ("content", "app_killed", "fatal"),
    [
        (crash(), True, True),
        (crash(isNonFatal=1), False, False),
        (report("309", {"pid": 9}, name="assetsd"), False, True),
        (report("385", {"exception": {"subtype": "MEMORY"}}, name=APP), None, False),
        (report("385", {"termination": {"code": 7}}, name=APP), True, True),
        (report("210", {"panicString": "x"}), None, None),
    ],
)
def test_who_died_is_told_only_where_the_kind_can(
    content: bytes, *, app_killed: bool | None, fatal: bool | None
) -> None:
    found = row(content)
    assert (found["app_killed"], found["fatal"]) == (app_killed, fatal)


def test_usage_reports_tell_whether_the_process_was_ended() -> None:
    text = "Event: cpu usage\nAction taken: {}\nCPU: 90 seconds\nPID: 77\n"
    head = b'{"bug_type":"202","name":"SoakHarness"}\n'
    kept = row(head + text.format("none").encode())
    ended = row(head.replace(b"202", b"206") + text.format("Process killed").encode())
    assert (kept["fatal"], kept["event"], kept["message"]) == (False, "cpu usage", "90 seconds")
    assert (ended["fatal"], ended["app_killed"], ended["pid"]) == (True, True, 77)


def test_a_panic_with_a_cut_body_still_restarted_the_phone() -> None:
    found = row(report("210", {"panicString": "panic(cpu 1)"})[:-6])
    assert (found["parsed"], found["error"]) == (False, "truncated")
    assert (found["device_rebooted"], found["infra"]) == (True, True)


def test_a_reset_counter_is_text() -> None:
    found = row(b'{"bug_type":"115"}\nIncident: X\nBoot faults: wdog,reset_in1\n')
    assert (found["kind"], found["parsed"]) == ("reset-counter", True)
    assert (found["message"], found["device_rebooted"]) == ("Boot faults: wdog,reset_in1", True)


def test_several_reports_in_one_file_are_all_listed() -> None:
    joined = jetsam(process()) + b"\n" + crash() + jetsam(process("late"))
    assert [found["kind"] for found in rows(joined)] == ["jetsam", "crash", "jetsam"]
    assert not any(found["trailing_ignored"] for found in rows(joined))


def test_a_cut_report_does_not_take_the_next_one_with_it() -> None:
    joined = jetsam(process())[:-30] + b"\n" + crash()
    assert [found["parsed"] for found in rows(joined)] == [False, True]


def test_bytes_that_are_no_text_are_counted_and_the_rest_is_read() -> None:
    found = row(jetsam(process()).replace(b'"purgeable"', b'"x"').replace(APP.encode(), b"S\xffk"))
    assert (found["parsed"], found["decode_errors"], found["victim"]) == (True, 1, "S\ufffdk")


def test_a_text_in_utf_16_is_read() -> None:
    found = row(jetsam(process()).decode().encode("utf-16"))
    assert (found["victim"], found["decode_errors"]) == (APP, 0)


def test_a_crash_without_any_header_is_read() -> None:
    text = (
        b"Incident Identifier: 0A-1\nHardware Model:      iPhone13,2\n"
        b"Process:             SoakHarness [4040]\nDate/Time: 2020-10-15 17:29:58.79 +0100\n"
        b"Exception Type:  EXC_BAD_ACCESS (SIGSEGV)\n"
        b"Termination Reason: Namespace SIGNAL, Code 0xb\n"
    )
    found = row(text)
    assert (found["kind"], found["signal"], found["code"]) == ("crash", "SIGSEGV", "0xb")
    assert (found["incident"], found["pid"], found["product"]) == ("0A-1", 4040, "iPhone13,2")
    assert found["utc"] == "2020-10-15T16:29:58.790000Z"


def test_a_translation_before_the_full_report_is_passed_over() -> None:
    text = (
        b"Process: SoakHarness [1]\nException Type: EXC_CRASH\n-----------\nFull Report\n-----\n\n"
    )
    assert [found["pid"] for found in rows(text + crash(pid=501))] == [501]


@pytest.mark.parametrize(
    ("content", "kind", "error"),
    [
        (b"", "unparsed", "empty"),
        (b"\0\0\0", "unparsed", "empty"),
        (b"hello", "unparsed", "no JSON header"),
        (b'{"a":1}', "unparsed", "no bug type"),
        (b'{"bug_type":"298"', "jetsam", "truncated"),
        (b'{"bug_type":"298"}', "jetsam", "no body"),
        (b'{"bug_type":"298"}\nhello', "jetsam", "not JSON"),
        (b'{"bug_type":"298"}\n{"processes":[}]}', "jetsam", "damaged"),
        (b'{"bug_type":"298"}\n{"processes":{}}', "jetsam", "no process list"),
        (b'{"bug_type":"309"}\n{"pid":1', "crash", "truncated"),
    ],
)
def test_what_cannot_be_read_says_why(content: bytes, kind: str, error: str) -> None:
    found = row(content)
    assert (found["kind"], found["parsed"], found["error"]) == (kind, False, error)


def test_a_cut_report_still_tells_when_and_where_it_was_written() -> None:
    found = row(jetsam(process(), date="2026-01-10 12:00:00.51 +0000", product="iPhone15,3"))
    cut = row(report("298", {"product": "iPhone15,3", "date": "2026-01-10 12:00:00.51 +0000"})[:-3])
    assert cut["utc"] == "2026-01-10T12:00:00Z"  # the header's: the body's is cut
    assert (cut["product"], found["utc"]) == ("iPhone15,3", "2026-01-10T12:00:00.510000Z")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (jetsam(process()), "SoakHarness [501] killed in front at 1024 MiB: per-process-limit"),
        (jetsam(process("x", pid=3)), "the app was not killed"),
        (crash(), "SoakHarness [501]: SIGABRT"),
        (report("210", {"panicString": "panic(cpu 0)"}), "the phone restarted: panic(cpu 0)"),
        (report("298", {"product": "Watch7,3"}), "ignored: a companion device's report"),
        (b"", "no time unparsed not readable: empty"),
    ],
)
def test_the_digest_is_for_people(content: bytes, words: str) -> None:
    first, second = digest_lines(row(content))
    assert words in first
    assert second == "    r.ips"


def test_the_total_counts_kinds() -> None:
    assert total_line({"jetsam": 2, "crash": 1}) == "3 reports: 1 crash, 2 jetsam"
    assert total_line({}) == "0 reports"


def test_the_total_says_how_many_copies_are_not_listed() -> None:
    assert (
        total_line({"crash": 1}, 1) == "1 report: 1 crash; 1 copy of the same incident not listed"
    )
    assert total_line({"crash": 1}, 2).endswith("; 2 copies of the same incident not listed")
