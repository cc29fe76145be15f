"""Every report of the fixture set says what `expected.json` says."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from orchestrator.evidence.parse import parse_report, without_copies
from orchestrator.evidence.reports import (
    CrashReport,
    ExcResourceReport,
    JetsamReport,
    OtherReport,
    PanicReport,
    ParsedReport,
    Unparsed,
    UsageReport,
)
from tests.evidence.factory import APP, FIXTURES

EXPECTED: dict[str, dict[str, Any]] = json.loads((FIXTURES / "expected.json").read_text())
MIB = 1024**2


def parsed(name: str) -> ParsedReport:
    return parse_report((FIXTURES / name).read_bytes(), name)


def names_of(kind: str, *, readable: bool = True) -> list[str]:
    return [
        name
        for name, facts in EXPECTED.items()
        if facts["kind"] == kind and facts.get("parsed", True) is readable
    ]


@pytest.mark.parametrize("name", names_of("jetsam"))
def test_jetsam_reports_name_their_victims(name: str) -> None:
    facts, report = EXPECTED[name], parsed(name)
    assert isinstance(report, JetsamReport)
    victim = report.victims[0]
    found = {
        "victim": victim.name,
        "pid": victim.pid,
        "reason": victim.reason,
        "rpages": victim.resident_pages,
        "footprint_mib": (victim.footprint_bytes or 0) / MIB,
        "foreground": victim.foreground,
        "largest": report.largest_process,
        "page_size_assumed": report.page_size_bytes if report.page_size_assumed else None,
        "app_killed": any(victim.name == APP for victim in report.victims),
    }
    assert {key: found[key] for key in facts if key in found} == {
        key: facts[key] for key in facts if key in found
    }


@pytest.mark.parametrize("name", [name for name in EXPECTED if "utc" in EXPECTED[name]])
def test_reports_tell_when_they_were_written(name: str) -> None:
    time = parsed(name).header.time
    assert time is not None
    assert time.utc == datetime.fromisoformat(EXPECTED[name]["utc"])


@pytest.mark.parametrize("name", [*names_of("jetsam", readable=False), *names_of("unparsed")])
def test_unreadable_reports_say_why_and_keep_what_the_header_said(name: str) -> None:
    facts, report = EXPECTED[name], parsed(name)
    assert isinstance(report, Unparsed)
    assert report.reason == facts["error"]
    assert report.header.bug_type == ("298" if facts["kind"] == "jetsam" else None)


def test_the_watchdog_report_tells_event_and_temperature() -> None:
    report, facts = parsed("C01_watchdog_ios26.ips"), EXPECTED["C01_watchdog_ios26.ips"]
    assert isinstance(report, CrashReport)
    assert report.watchdog
    assert not report.stopped_too_slowly
    assert report.code == int(facts["code"], 16)
    assert (report.watchdog_event, report.thermal_state) == (facts["event"], facts["thermal"])


def test_the_swift_crash_tells_its_fatal_error() -> None:
    report, facts = parsed("C03_swift_fatal_asi_list.ips"), EXPECTED["C03_swift_fatal_asi_list.ips"]
    assert isinstance(report, CrashReport)
    assert (report.signal, report.message) == (facts["signal"], facts["message"])


def test_the_memory_resource_report_is_not_fatal() -> None:
    report = parsed("C05_exc_resource_memory_385.ips")
    facts = EXPECTED["C05_exc_resource_memory_385.ips"]
    assert isinstance(report, ExcResourceReport)
    assert report.resource == "MEMORY"
    assert (report.limit_mib, report.fatal) == (facts["limit_mb"], facts["fatal"])


@pytest.mark.parametrize("name", names_of("other"))
def test_other_types_are_kept_with_their_number(name: str) -> None:
    report = parsed(name)
    assert isinstance(report, OtherReport)
    assert report.bug_type == EXPECTED[name]["bug_type"]


def test_the_cpu_resource_report_is_known_noise() -> None:
    report = parsed("C10_cpu_resource_text_202.ips.synced")
    assert isinstance(report, UsageReport)
    assert report.name == EXPECTED["C10_cpu_resource_text_202.ips.synced"]["kind"]
    assert (report.event, report.fatal) == ("cpu usage", False)


def test_the_panic_says_that_the_phone_restarted() -> None:
    report = parsed("C12_panic-full-210.ips")
    assert isinstance(report, PanicReport)
    assert report.first_line == "panic(cpu 1 caller 0x0): userspace watchdog timeout"


def test_copies_of_one_incident_count_once() -> None:
    copies = [parsed(name) for name in EXPECTED if EXPECTED[name].get("dedupe_group") == "J09"]
    assert len(copies) == 3
    assert without_copies(copies) == copies[:1]


def test_every_fixture_is_covered() -> None:
    kinds = {"jetsam", "unparsed", "watchdog", "crash", "exc-resource-memory", "other"}
    assert {facts["kind"] for facts in EXPECTED.values()} == kinds | {"cpu-resource", "panic"}
