"""Every scenario runs on virtual phones in a shortened form, and says so where it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.config.scenario_catalog import SCENARIOS
from tests.end_to_end.fleet_process import (
    HAS_SWIFT,
    WITHOUT_SWIFT,
    FinishedRun,
    read_json,
    records,
    run_fleet,
)

if TYPE_CHECKING:
    from pathlib import Path

SHORTENED = (
    "--duration",
    "14s",
    *("--set", "workload.decode_tokens_per_s=600"),
    *("--set", "workload.prefill_tokens_per_s=20000"),
    *("--set", "evidence.report_wait_s=5"),
)
# That of the self-test has budgets of its own: tests/end_to_end/test_selftest.py.
FOR_PHONES = [name for name in SCENARIOS if name != "selftest"]
NEEDS_SWIFT = [name for name, scenario in SCENARIOS.items() if scenario.needs_swift]


@pytest.mark.deep
@pytest.mark.skipif(not HAS_SWIFT, reason="needs a Swift toolchain")
@pytest.mark.parametrize("name", FOR_PHONES)
def test_a_scenario_passes_in_a_shortened_form(name: str, tmp_path: Path) -> None:
    words = ("soak", "--virtual", "--scenario", name)
    run = run_fleet(tmp_path, *words, *SHORTENED, limit_s=600)
    assert run.exit_code == 0, run.stdout + run.stderr
    required = set(SCENARIOS[name].required_checks)
    for phone in run.summary["phones"]:
        results = {check["id"]: check["result"] for check in phone["checks"]}
        assert {results[check] for check in required} <= {"pass", "skipped"}


@pytest.mark.deep
@pytest.mark.parametrize("name", sorted(set(FOR_PHONES) - set(NEEDS_SWIFT)))
def test_the_stand_in_app_plays_the_others(name: str, tmp_path: Path) -> None:
    words = ("soak", "--virtual", "--scenario", name, *SHORTENED)
    run = run_fleet(tmp_path, *words, limit_s=600, PATH=WITHOUT_SWIFT)
    assert run.exit_code == 0, run.stdout + run.stderr


def test_what_the_stand_in_app_does_not_play_is_refused_before_a_run(tmp_path: Path) -> None:
    words = ("soak", "--virtual", "--scenario", "background", "--set", ONE_PHONE)
    run = run_fleet(tmp_path, *words, limit_s=120, PATH=WITHOUT_SWIFT)
    assert run.exit_code == 5
    assert "the Python stand-in app does not play them" in run.stderr
    assert "docs/how-to/get-swift.md" in run.stderr
    assert not run.output.exists() or not list(run.output.iterdir())


ONE_PHONE = "virtual.phones=[{model: iPhone 14}]"

# Exact by tokens: it is over in some seconds of an engine of set speed.
RELAUNCHED = (
    *("soak", "--virtual", "--scenario", "budget-edge"),
    *("--set", ONE_PHONE),
    *("--set", "workload.relaunches=1"),
    *("--set", "workload.stop_after_tokens=1401"),
    *("--set", "workload.decode_tokens_per_s=1000"),
    *("--set", "workload.prefill_tokens_per_s=40000"),
)


def assert_two_launches(run: FinishedRun) -> None:
    assert run.exit_code == 0, run.stdout + run.stderr
    (device,) = run.devices()
    written = records(device)
    byes = [record["tokens_total"] for record in written if record["kind"] == "bye"]
    loads = [record["cold"] for record in written if record["kind"] == "load"]
    evidence = read_json(device / "attempts" / "1" / "evidence.json")
    assert byes == [701, 700]
    assert loads == [True, False]
    assert [entry["number"] for entry in evidence["launches"]] == [1, 2]
    assert len({record["launch"] for record in written}) == 2


@pytest.mark.timeout(600)
def test_a_soak_over_two_launches_passes_with_the_stand_in_app(tmp_path: Path) -> None:
    assert_two_launches(run_fleet(tmp_path, *RELAUNCHED, limit_s=580, PATH=WITHOUT_SWIFT))


@pytest.mark.deep
@pytest.mark.skipif(not HAS_SWIFT, reason="needs a Swift toolchain")
def test_a_soak_over_two_launches_passes_with_the_swift_app(tmp_path: Path) -> None:
    assert_two_launches(run_fleet(tmp_path, *RELAUNCHED, limit_s=600))
