"""A real decoder under soak: a kit is pushed, compared with its goldens at the load, and runs."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from orchestrator.mlpackage.build.recipe import TINY
from tests.benchmarks.decoder_files import write_decoder_files
from tests.end_to_end.fleet_process import HAS_SWIFT, FinishedRun, records, run_fleet

if TYPE_CHECKING:
    from pathlib import Path

# Small enough for trims in some seconds of a decoder that runs as fast as a busy host lets it.
SOAK = (
    *("soak", "--virtual", "--duration", "15s"),
    *("--set", 'virtual.phones=[{"model": "iPhone 15", "os": "18.5"}]'),
    *("--set", "policy.scenario_budget_tokens=64"),
    *("--set", "workload.min_prompt_ids=8", "--set", "workload.max_prompt_ids=16"),
    *("--set", "evidence.report_wait_s=5", "--set", "model.engine=reference"),
)
pytestmark = [
    pytest.mark.deep,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not HAS_SWIFT, reason="no Swift toolchain on PATH"),
]


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kit")
    write_decoder_files(TINY, folder)
    return folder


def soak(folder: Path, kit: Path) -> FinishedRun:
    return run_fleet(folder, *SOAK, "--set", f"model.int4={kit}", limit_s=900)


def test_the_decoder_meets_its_goldens_and_keeps_the_contract(kit: Path, tmp_path: Path) -> None:
    run = soak(tmp_path, kit)
    told = records(run.devices()[0])
    assert told[0]["engine"] == "reference"
    goldens = [r["detail"] for r in told if r["kind"] == "breadcrumb" and r["about"] == "load"]
    assert any("200 among the first 3" in detail for detail in goldens), goldens
    results = {check["id"]: check["result"] for check in run.phones["iPhone 15"]["checks"]}
    assert "fail" not in results.values(), run.stdout
    judged = {"trim.on-schedule", "trim.keeps-tail", "quant.matches-device", "state.lifecycle"}
    assert {check: results[check] for check in judged} == dict.fromkeys(judged, "pass")
    assert results["context.proven"] == "unmeasured"  # only a witness' tokens prove their rows


def test_another_model_than_that_of_the_goldens_is_not_soaked(kit: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(kit, other)
    goldens = json.loads((other / "goldens.json").read_text())
    for prompt in goldens["prompts"]:
        prompt["top_ids"] = [[(i + 1) % 4096 for i in row] for row in prompt["top_ids"]]
    (other / "goldens.json").write_text(json.dumps(goldens))
    run = soak(tmp_path, other)
    assert run.exit_code == 1, run.stdout + run.stderr
    told = records(run.devices()[0])
    faults = [record["message"] for record in told if record["kind"] == "fault"]
    assert any("not the model of its goldens" in message for message in faults), faults
    assert not any(record["kind"] == "tokens" for record in told)
