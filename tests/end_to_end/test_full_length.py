"""The smoke scenario at its real length, as `make soak` runs it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.end_to_end.fleet_process import kinds, read_json, records, run_fleet

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.full_length
@pytest.mark.timeout(900)
def test_the_smoke_passes_warm_in_under_two_minutes(tmp_path: Path) -> None:
    run_fleet(tmp_path, "soak", "--virtual", "--duration", "1s", limit_s=600)  # builds the app
    began = time.monotonic()
    run = run_fleet(tmp_path, "soak", "--devices", "all", "--virtual", limit_s=300)
    assert run.exit_code == 0, run.stdout + run.stderr
    assert time.monotonic() - began < 120
    assert len(run.devices()) == 4
    for device in run.devices():
        assert read_json(device / "verdict.json")["inference_s"] >= 30
        assert kinds(device)["trim"] >= 3
        assert kinds(device)["evict"] >= 1
        met_s = requirement_met_s(device)
        assert met_s < 25, f"3 trims and an eviction took {met_s} s"


def requirement_met_s(device: Path) -> float:
    """Seconds from the first prediction to the third trim and the first eviction."""
    told = records(device)
    first_ns = next(r["start_ns"] for r in told if r["kind"] == "prefill")
    trims = [r["t_ns"] for r in told if r["kind"] == "trim"]
    evictions = [r["t_ns"] for r in told if r["kind"] == "evict"]
    return float(max(trims[2], evictions[0]) - first_ns) / 1e9
