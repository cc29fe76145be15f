"""`fleet selftest` as a person runs it: a subset here, everything in deep."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.checks import CHECK_IDS
from tests.end_to_end.fleet_process import HAS_SWIFT, WITHOUT_SWIFT, run_fleet

if TYPE_CHECKING:
    from pathlib import Path

# One of each kind: a count, a silent lie, a death, a silence, a speed, a text.
SUBSET = (
    "trim-forgets-count",
    "double-feed-last",
    "crash",
    "telemetry-stops",
    "slow-decay",
    "split-utf8",
    "keeps-kv-in-background",
    "leak",
)
needs_swift = pytest.mark.skipif(not HAS_SWIFT, reason="needs a Swift toolchain")


@needs_swift
@pytest.mark.timeout(600)
def test_a_subset_is_caught_and_clean_sessions_pass(tmp_path: Path) -> None:
    wanted = [word for name in SUBSET for word in ("--defect", name)]
    run = run_fleet(tmp_path, "selftest", "--repeat", "1", "--json", *wanted, limit_s=500)
    result = json.loads(run.stdout)
    assert {defect["name"] for defect in result["defects"]} == set(SUBSET)
    assert [defect for defect in result["defects"] if not defect["caught"]] == []
    assert result["clean"] == {"runs": 8, "false_alarms": 0}
    assert run.exit_code == 0


@needs_swift
@pytest.mark.deep
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_defect_is_caught_by_its_own_check(tmp_path: Path, seed: int) -> None:
    run = run_fleet(
        tmp_path, "selftest", "--seed", str(seed), "--repeat", "2", "--json", limit_s=1400
    )
    result = json.loads(run.stdout)
    assert len(result["defects"]) == 46
    assert {check for defect in result["defects"] for check in defect["expected"]} == set(CHECK_IDS)
    assert [defect for defect in result["defects"] if not defect["caught"]] == []
    assert result["clean"] == {"runs": 16, "false_alarms": 0}
    assert run.exit_code == 0


def test_an_unknown_defect_is_refused(tmp_path: Path) -> None:
    run = run_fleet(tmp_path, "selftest", "--defect", "no-such")
    assert run.exit_code == 2
    assert "no-such" in run.stderr
    assert run.stdout == ""


def test_without_swift_the_self_test_says_so(tmp_path: Path) -> None:
    run = run_fleet(tmp_path, "selftest", "--json", PATH=WITHOUT_SWIFT)
    assert run.exit_code == 5
    assert "Swift" in run.stderr
    assert run.stdout == ""
