"""`fleet calibrate` on virtual phones finds what they were configured with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.domain.iphone import MIB
from tests.end_to_end.fleet_process import WITHOUT_SWIFT, FinishedRun, run_fleet

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(600)

LIMIT_MIB = 3000  # the catalog has 2867 for an iPhone 14
CONFIG = f"""\
schema: 1
virtual:
  phones:
    - {{model: iPhone 14, os: "18.5", limit_mib: {LIMIT_MIB}}}
    - {{model: iPhone 16, os: "18.6"}}
  faults:
    - {{phone: vp-01, at_s: 0.1, kind: reports, settings: {{delay_s: 0.5}}}}
    - {{phone: vp-02, at_s: 0.1, kind: reports, settings: {{delay_s: 0.5, limit_per_day: 1}}}}
"""


def fleet(folder: Path, *words: str) -> FinishedRun:
    config = folder / "fleet.yaml"
    config.write_text(CONFIG)
    output = str(folder / "runs")
    return run_fleet(
        folder, *words, "--virtual", "--config", str(config), "--output", output,
        PATH=WITHOUT_SWIFT, limit_s=300,
    )  # fmt: skip


def models_sent(run: Path) -> list[bool]:
    events = map(json.loads, (run / "events.ndjson").read_text().splitlines())
    return [event["facts"]["sent"] for event in events if event["kind"] == "model"]


def test_a_calibration_finds_what_the_phones_were_configured_with(tmp_path: Path) -> None:
    done = fleet(tmp_path, "calibrate", "--json")
    assert done.exit_code == 0, done.stderr
    phones: dict[str, Any] = {p["alias"]: p for p in json.loads(done.stdout)["phones"]}
    small, large = phones["vp-01"], phones["vp-02"]

    grain = 4 * MIB  # a host page is 128 KiB of a phone; footprint and limit are two readings
    assert abs(small["limit_bytes"] - LIMIT_MIB * MIB) < grain
    assert abs(large["limit_bytes"] - 3376 * MIB) < grain
    assert f"is {LIMIT_MIB} MiB, documented are 2867 MiB" in "\n".join(small["findings"])
    assert "documented" not in "\n".join(large["findings"])

    assert small["physical_memory_bytes"] == small["sysmon_memory_bytes"] == 5_917_753_344
    assert large["physical_memory_bytes"] == large["sysmon_memory_bytes"] == 8_021_032_960
    for phone in (small, large):
        assert phone["warnings"] == ["synthetic/host", "kernel/host"]
        assert phone["warnings_noticed"] >= 2  # the kernel's, one a run; not those of the app
        assert 90 < phone["warned_at_percent"] < 100  # the virtual kernel warns from 92 % on
        assert (phone["deaths"]["count"], phone["deaths"]["exits"]) == (2, ["signal 9"])
        assert phone["own_kill"] == "signal 9"
        assert phone["state"]["stated_bytes"] == 4096 * 32_768
        assert all(delay >= 0.4 for delay in phone["deaths"]["report_delays_s"])
    assert (small["deaths"]["reports"], large["deaths"]["reports"]) == (2, 1)

    first, second = sorted((tmp_path / "runs" / "calibrations").glob("2*Z-*"))
    assert models_sent(first) == [True] * 4  # two phones, two quantizations
    assert models_sent(second) == [False] * 4


@pytest.mark.deep
def test_a_soak_expects_the_limit_that_was_calibrated(tmp_path: Path) -> None:
    assert fleet(tmp_path, "calibrate", "--devices", "vp-01", "--deaths", "1").exit_code == 0
    quick = ("--duration", "3s", "--devices", "vp-01", "--set", "evidence.report_wait_s=1")
    fleet(tmp_path, "soak", *quick)
    plan = json.loads((tmp_path / "runs" / "latest" / "plan.json").read_text())
    expected = plan["phones"][0]["expected"]["limit_bytes"]
    assert abs(expected - LIMIT_MIB * MIB) < 4 * MIB


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--set", "harness.defect=never-trim"), "would measure the defect"),
        (("--bundle-id", "dev.example.other"), "--bundle-id goes with --ipa"),
    ],
)
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    done = fleet(tmp_path, "calibrate", *words)
    assert done.exit_code == 2
    assert reason in done.stderr
    assert not (tmp_path / "runs" / "calibrations").exists()
