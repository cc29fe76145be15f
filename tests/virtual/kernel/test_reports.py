"""The texts of reports, parsed back, and the folder they appear in."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pycrashreport.crash_report import (  # type: ignore[import-untyped]
    get_crash_report_from_buf,
)

from orchestrator.virtual.kernel import InstalledApp, LogLine
from orchestrator.virtual.kernel.crash import Crashed, crash_report, crash_stem, is_crash
from orchestrator.virtual.kernel.image import lc_uuid
from orchestrator.virtual.kernel.jetsam import (
    KillReason,
    Row,
    app_states,
    cut_name,
    jetsam_report,
    jetsam_stem,
    system_row,
)
from orchestrator.virtual.kernel.reports import DailyQuota, ReportFolder, ReportPolicy
from orchestrator.virtual.kernel.residents import SystemProcesses

if TYPE_CHECKING:
    from orchestrator.virtual.kernel import KernelFacts

INCIDENT = "6C4986B0-FCE6-542C-AD45-8C8B75FA69A6"
WHEN = datetime(2026, 5, 28, 1, 35, 47, 630_000, timezone(timedelta(hours=-5)))
UUID = "171a10ac-1ec2-50a0-9926-c8cbffcdf161"
LIMIT_PAGES = 2867 * 1024**2 // 16384
VICTIM = Row(
    "SoakHarness",
    612,
    UUID,
    LIMIT_PAGES,
    100,
    ("frontmost",),
    7.5,
    1.25,
    KillReason.PER_PROCESS_LIMIT,
)
APP = InstalledApp("com.example.soak", "SoakHarness", Path("/x"), Path("/y"), "1.2", "34")
CRASHED = Crashed(APP, 612, UUID, "/private/SoakHarness", WHEN, True, int(signal.SIGSEGV), "")


def parsed(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    head, body = text.split("\n", 1)
    return json.loads(head), json.loads(body)


def jetsam(facts: KernelFacts) -> tuple[dict[str, Any], dict[str, Any]]:
    system = SystemProcesses(facts.boot_time_s, lambda _: False).running()
    rows = [VICTIM, *(system_row(process, facts, WHEN.timestamp()) for process in system)]
    return parsed(jetsam_report(facts, rows, incident=INCIDENT, when=WHEN))


def test_a_jetsam_event_has_the_header_of_ios_18(facts: KernelFacts) -> None:
    header, body = jetsam(facts)
    assert header == {
        "bug_type": "298",
        "timestamp": "2026-05-28 01:35:47.63 -0500",
        "os_version": "iPhone OS 18.5 (22F76)",
        "roots_installed": 0,
        "incident_id": INCIDENT,
    }
    assert body["product"] == "iPhone15,4"
    assert body["date"] == header["timestamp"]


def test_the_victim_is_the_only_process_with_a_reason_and_dies_at_the_limit(
    facts: KernelFacts,
) -> None:
    _, body = jetsam(facts)
    (victim,) = [each for each in body["processes"] if "reason" in each]
    assert (victim["name"], victim["pid"], victim["uuid"]) == ("SoakHarness", 612, UUID)
    assert victim["reason"] == "per-process-limit"
    assert victim["states"] == ["frontmost"]
    assert victim["rpages"] * body["memoryStatus"]["pageSize"] == 2867 * 1024**2
    assert "killDelta" in victim


def test_the_largest_process_is_another_than_the_victim(facts: KernelFacts) -> None:
    _, body = jetsam(facts)
    names = {each["name"] for each in body["processes"]}
    assert body["largestProcess"] in names - {"SoakHarness"}
    assert {"kernel_task", "SpringBoard", "backboardd"} <= names


def test_ios_26_writes_other_keys_than_ios_18(facts: KernelFacts) -> None:
    _, old = jetsam(facts)
    _, new = jetsam(replace(facts, os="26.0", build="23A341"))
    assert new.keys() - old.keys() == {"appleIntelligenceStatus", "eventReason", "eventCode"}
    assert new["processes"][0]["physicalPages"]["frozen_to_swap_pages"] == 0
    assert "frozen_to_swap_pages" not in old["processes"][0]["physicalPages"]


def test_a_pid_that_an_app_has_belongs_to_no_process_of_the_system(facts: KernelFacts) -> None:
    system = SystemProcesses(facts.boot_time_s, lambda pid: pid == 34)
    assert 34 not in [process.pid for process in system.running()]
    assert system.find(34) is None


@pytest.mark.parametrize(
    ("frontmost", "suspended", "states"),
    [(True, False, ["frontmost"]), (False, False, ["background"]), (False, True, ["suspended"])],
)
def test_the_states_say_where_the_victim_was(
    frontmost: bool, suspended: bool, states: list[str]
) -> None:
    assert list(app_states(frontmost=frontmost, suspended=suspended)) == states


def test_memory_pages_add_up_to_no_more_than_the_phone_has(facts: KernelFacts) -> None:
    pages = jetsam(facts)[1]["memoryStatus"]["memoryPages"]
    held = sum(pages[kind] for kind in ("active", "inactive", "wired", "free"))
    assert 0 < held * 16384 <= facts.model.physical_memory_bytes


@pytest.mark.parametrize("name", ["x" * 40, "ä" * 20, "日本" * 9])
def test_a_long_name_is_cut_at_32_bytes_and_never_within_a_character(name: str) -> None:
    cut = cut_name(name)
    assert name.startswith(cut)
    assert 29 < len(cut.encode()) <= 32


def test_a_jetsam_file_name_has_the_local_time() -> None:
    assert jetsam_stem(WHEN) == "JetsamEvent-2026-05-28-013547"


CRASHES = (
    (signal.SIGABRT, "EXC_CRASH", 6),
    (signal.SIGSEGV, "EXC_BAD_ACCESS", 11),
    (signal.SIGILL, "EXC_BAD_INSTRUCTION", 4),
    (signal.SIGBUS, "EXC_BAD_ACCESS", 10),
    (signal.SIGTRAP, "EXC_BREAKPOINT", 5),
    (signal.SIGFPE, "EXC_ARITHMETIC", 8),
)


@pytest.mark.parametrize(("number", "exception", "darwin"), CRASHES)
def test_a_crash_report_names_the_fault_by_darwins_number(
    facts: KernelFacts, number: signal.Signals, exception: str, darwin: int
) -> None:
    crashed = replace(CRASHED, cause=int(number))
    _, body = parsed(crash_report(facts, crashed, incident=INCIDENT, when=WHEN))
    assert body["exception"]["type"] == exception
    assert body["exception"]["signal"] == number.name
    assert body["termination"]["code"] == darwin
    assert body["termination"]["indicator"].endswith(f": {darwin}")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_from_outside_is_no_crash(number: signal.Signals) -> None:
    assert not is_crash(number)


def test_the_parser_of_the_host_accepts_a_crash_report(facts: KernelFacts) -> None:
    text = crash_report(facts, CRASHED, incident=INCIDENT, when=WHEN)
    report = get_crash_report_from_buf(text, "SoakHarness-2026-05-28-013547.ips")
    assert report.name == "SoakHarness"
    assert report.incident_id == INCIDENT
    assert report.timestamp == datetime(2026, 5, 28, 1, 35, 47, 630_000)  # noqa: DTZ001
    assert report.exception_type == "EXC_BAD_ACCESS"
    assert "SoakHarness" in str(report)


def test_the_line_of_a_swift_trap_stands_in_the_report_and_other_output_does_not(
    facts: KernelFacts,
) -> None:
    trap = 'A.swift:4: Fatal error: "\x00</b>\ud800'
    swift = replace(CRASHED, cause=int(signal.SIGTRAP), last_line=trap)
    _, body = parsed(crash_report(facts, swift, incident=INCIDENT, when=WHEN))
    assert body["asi"] == {"libswiftCore.dylib": [trap]}
    other = replace(CRASHED, last_line="secret prompt")
    assert "secret" not in crash_report(facts, other, incident=INCIDENT, when=WHEN)


def test_the_uuid_follows_the_bytes_of_the_executable(tmp_path: Path) -> None:
    first, same, other = (tmp_path / name for name in "abc")
    first.write_bytes(b"one")
    same.write_bytes(b"one")
    other.write_bytes(b"two")
    assert lc_uuid(first) == lc_uuid(same) != lc_uuid(other)
    assert lc_uuid(first) == "7692c3ad-3540-bb80-3c02-0b3aee66cd88"  # sha256("one")


def test_a_quota_is_for_one_day() -> None:
    quota = DailyQuota(ReportPolicy(limit_per_day=2))
    monday, tuesday = date(2026, 5, 4), date(2026, 5, 5)
    assert [quota.take(monday) for _ in range(3)] == [True, True, False]
    assert quota.take(tuesday)


def test_a_quota_of_nothing_grants_nothing() -> None:
    assert not DailyQuota(ReportPolicy(limit_per_day=0)).take(date(2026, 5, 4))


@pytest.fixture
def log() -> list[LogLine]:
    return []


def test_a_report_is_announced_when_its_file_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "crashes"
    folder.mkdir()
    seen: list[tuple[LogLine, list[str]]] = []
    reports = ReportFolder(
        folder,
        lambda line: seen.append((line, [path.name for path in folder.iterdir()])),
        ReportPolicy(),
    )
    reports.save("298(298_LOW_PRIORITY)", "JetsamEvent-2026-05-28-013547", "text")
    ((line, files),) = seen
    assert files == ["JetsamEvent-2026-05-28-013547.ips"]
    assert (line.process, line.image) == ("osanalyticshelper", "OSAnalytics")
    assert line.text == (
        "Saved type '298(298_LOW_PRIORITY)' report (1 of max 25) as "
        "/private/var/mobile/Library/Logs/CrashReporter/JetsamEvent-2026-05-28-013547.ips"
    )


def test_two_reports_of_one_second_are_both_kept(tmp_path: Path, log: list[LogLine]) -> None:
    reports = ReportFolder(tmp_path, log.append, ReportPolicy())
    names = [reports.save("298(x)", "JetsamEvent-2026-05-28-013547", text) for text in "ab"]
    assert [(tmp_path / str(name)).read_text() for name in names] == ["a", "b"]


def test_a_name_with_a_slash_stays_in_the_folder(tmp_path: Path, log: list[LogLine]) -> None:
    folder = tmp_path / "crashes"
    folder.mkdir()
    reports = ReportFolder(folder, log.append, ReportPolicy())
    name = reports.save("309(x)", crash_stem("../../etc/x", WHEN), "t")
    assert [path.name for path in folder.iterdir()] == [name]


def test_a_report_that_cannot_be_stored_is_logged_and_not_announced(
    tmp_path: Path, log: list[LogLine]
) -> None:
    nowhere = ReportFolder(tmp_path / "none", log.append, ReportPolicy())
    here = ReportFolder(tmp_path, log.append, ReportPolicy())
    assert nowhere.save("309(x)", "a", "t") is None
    assert here.save("309(x)", "a\0b", "t") is None
    assert here.save("309(x)", "n" * 300, "t") is None
    assert [line.text.split()[0] for line in log] == ["Failed"] * 3


def test_times_of_a_crash_report_have_four_digits(facts: KernelFacts) -> None:
    when = datetime(2026, 8, 1, 3, 0, 0, 123_456, UTC)
    _, body = parsed(crash_report(facts, CRASHED, incident=INCIDENT, when=when))
    assert body["captureTime"] == "2026-08-01 03:00:00.1234 +0000"
