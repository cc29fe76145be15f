"""Five defects prove that the checks bite; nothing in telemetry or verdict names them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from tests.end_to_end.conftest import DEFECTS
from tests.end_to_end.fleet_process import FinishedRun, read_json, records

if TYPE_CHECKING:
    from collections.abc import Mapping

SIX_GB = ("iPhone 14", "iPhone 15")
EIGHT_GB = ("iPhone 15 Pro", "iPhone 16")
pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_a_product_failure(defect: str, quick_runs: Mapping[str, FinishedRun]) -> None:
    run = quick_runs[defect]
    assert run.exit_code == 1, run.stdout + run.stderr
    assert run.summary["outcome"] == "FAIL"
    assert run.summary["exit_code"] == 1


@pytest.mark.parametrize(
    ("defect", "checks"),
    [
        ("never-trim", {"budget.never-exceeded", "trim.on-schedule"}),
        ("no-evict", {"evict.on-warning"}),
        ("trim-stale-state", {"context.proven"}),
        ("jetsam", {"jetsam.none"}),
    ],
)
def test_a_defect_fails_its_own_checks_on_every_phone(
    defect: str, checks: set[str], quick_runs: Mapping[str, FinishedRun]
) -> None:
    for model in (*SIX_GB, *EIGHT_GB):
        assert checks <= quick_runs[defect].failed(model), model


def test_the_naive_comparison_with_8_gib_fails_on_8_gb_phones_only(
    quick_runs: Mapping[str, FinishedRun],
) -> None:
    run = quick_runs["naive-8gib"]
    for model in EIGHT_GB:
        assert "quant.matches-device" in run.failed(model)
    for model in SIX_GB:
        assert run.failed(model) == set()
        assert run.phones[model]["outcome"] == "PASS"


def test_a_jetsam_kill_is_told_with_its_evidence(quick_runs: Mapping[str, FinishedRun]) -> None:
    run = quick_runs["jetsam"]
    assert {phone["cause"] for phone in run.phones.values()} == {"jetsam_per_process_limit"}
    exits = run.events("app_exited")
    assert [event["facts"]["signal"] for event in exits] == [9, 9, 9, 9]
    for device in run.devices():
        reports = list((device / "attempts" / "1" / "reports").rglob("JetsamEvent-*.ips"))
        assert len(reports) == 1
        assert b"per-process-limit" in reports[0].read_bytes()
        verdict = read_json(device / "verdict.json")
        assert verdict["last_footprint_bytes"] >= 0.9 * verdict["limit_bytes"]


def test_the_junit_failure_of_a_kill_has_footprint_and_token_index(
    quick_runs: Mapping[str, FinishedRun],
) -> None:
    run = quick_runs["jetsam"]
    suites = ET.parse(run.path / "junit.xml").getroot()  # noqa: S314 - our own file
    for device in run.devices():
        verdict = read_json(device / "verdict.json")
        suite = next(s for s in suites.iter("testsuite") if verdict["alias"] in s.attrib["name"])
        failures = [f for f in suite.iter("failure") if f.get("type") == verdict["cause"]]
        text = " ".join(f"{f.get('message')} {f.text}" for f in failures)
        assert f"{verdict['last_footprint_bytes'] / 2**20:.0f}" in text
        assert str(verdict["last_token_index"]) in text
        assert ".ips" in text


def test_no_record_verdict_or_report_names_a_defect(quick_runs: Mapping[str, FinishedRun]) -> None:
    for defect in DEFECTS:
        run = quick_runs[defect]
        for device in run.devices():
            assert "defect" not in repr(records(device))
            assert "defect" not in (device / "verdict.json").read_text()
        for name in ("plan.json", "summary.json", "summary.md", "junit.xml", "report/index.html"):
            assert defect not in (run.path / name).read_text() or defect == "jetsam", name
