"""A customer's own app, with a pipeline of its own behind SoakProbe, through `fleet soak --ipa`."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from orchestrator.harness.package import AppIdentity, pack_binary
from tests.end_to_end.fleet_process import (
    HAS_SWIFT,
    QUICK,
    ROOT,
    FinishedRun,
    read_json,
    records,
    run_fleet,
)

EXAMPLE = AppIdentity(name="ProbeExample", bundle_id="com.example.probe", version="1.0", build="7")
PACKAGE = ROOT / "ios_harness"
# What the example is: 64 tokens, no pin, short prompts.
ITS_POLICY = (
    *("--set", 'virtual.phones=[{"model": "iPhone 15", "os": "18.5"}]'),
    *("--set", "policy.scenario_budget_tokens=64", "--set", "policy.pin=none"),
    *("--set", "workload.min_prompt_ids=12", "--set", "workload.max_prompt_ids=24"),
)
pytestmark = [
    pytest.mark.deep,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not HAS_SWIFT, reason="no Swift toolchain on PATH"),
]


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """The example app of ios_harness, packed as a customer's archive, soaked on one phone."""
    folder = tmp_path_factory.mktemp("customer")
    swift = shutil.which("swift")
    assert swift is not None
    build = [swift, "build", "--product", "probe-example", "--package-path", str(PACKAGE)]
    subprocess.run(build, check=True, capture_output=True)
    binary = PACKAGE / ".build" / "debug" / "probe-example"
    ipa = pack_binary(binary, folder / "ProbeExample.ipa", EXAMPLE)
    named = ("--ipa", str(ipa), "--bundle-id", EXAMPLE.bundle_id)
    return run_fleet(folder, "soak", "--virtual", *QUICK, *ITS_POLICY, *named, limit_s=600)


def checks(run: FinishedRun) -> dict[str, str]:
    return {check["id"]: check["result"] for check in run.phones["iPhone 15"]["checks"]}


def test_its_own_records_are_judged_by_the_contract(soaked: FinishedRun) -> None:
    results = checks(soaked)
    judged = {
        *("budget.never-exceeded", "budget.matches-device", "trim.on-schedule", "trim.keeps-tail"),
        *("trim.count-consistent", "trim.notice", "state.serialised", "state.lifecycle"),
        *("stream.ends-once", "stream.text-valid", "crash.none", "jetsam.none", "soak.completed"),
        "telemetry.complete",
    }
    assert {check: results[check] for check in judged} == dict.fromkeys(judged, "pass")
    assert "fail" not in results.values(), soaked.stdout


def test_checks_whose_records_it_does_not_send_are_unmeasured(soaked: FinishedRun) -> None:
    results = checks(soaked)
    sent = {record["kind"] for record in records(soaked.devices()[0])}
    assert not sent & {"parity", "memory_warning", "evict", "lifecycle"}
    unsent = {
        *("trim.parity", "evict.on-warning", "evict.notice", "evict.frees-memory"),
        *("background.releases", "context.proven", "quant.matches-device"),
    }
    assert {check: results[check] for check in unsent} == dict.fromkeys(unsent, "unmeasured")


def test_a_run_that_needs_what_the_app_does_not_show_is_inconclusive(soaked: FinishedRun) -> None:
    # The smoke scenario requires an eviction by a warning; the app never came near its limit.
    assert soaked.exit_code == 4, soaked.stdout + soaked.stderr
    assert soaked.summary["outcome"] == "ERROR"


def test_the_plan_names_the_app_that_was_given(soaked: FinishedRun) -> None:
    app = read_json(soaked.path / "plan.json")["app"]
    assert (app["kind"], app["bundle_id"], app["name"]) == (
        "supplied",
        EXAMPLE.bundle_id,
        EXAMPLE.name,
    )
