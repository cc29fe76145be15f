"""The stand-in app is the oracle: one scenario and seed through Swift and Python are equal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.end_to_end.fleet_process import (
    HAS_SWIFT,
    WITHOUT_SWIFT,
    FinishedRun,
    records,
    run_fleet,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(not HAS_SWIFT, reason="no swift on PATH: nothing to compare with"),
]

# Token-indexed throughout: synthetic warnings, an exact end, and a ramp that never begins.
SAME = (
    *("soak", "--virtual", "--devices", "vp-01,vp-03", "--seed", "11", "--duration", "60s"),
    *("--set", "workload.decode_tokens_per_s=1500"),
    *("--set", "workload.stop_after_tokens=3000"),
    *("--set", "workload.warn_at_tokens=[40,700,701,1500,2600]"),
    *("--set", "workload.ballast_from_token=1000000"),
    *("--set", "workload.ballast_to_token=1000001"),
    *("--set", "workload.turns_per_conversation=5"),
)
COMPARED = {
    "turn_start": ("conversation", "turn", "prompt_ids", "used_ids", "carried", "limit"),
    "prefill": ("conversation", "turn", "purpose", "start", "ids", "state"),
    "trim": ("conversation", "turn", "before", "kept", "pinned", "k", "reason", "state"),
    "evict": ("conversation", "turn", "before", "kept", "pinned", "k", "reason", "state"),
    "state": ("action", "id", "purpose", "bytes"),
    "turn_end": ("conversation", "turn", "reason", "generated", "consumed", "text_hash"),
    "bye": ("reason", "tokens_total", "turns", "trims", "evictions", "warnings"),
}


def story(device: Path) -> list[tuple[Any, ...]]:
    """What happened to the context, without times and footprints, tokens one by one."""
    told: list[tuple[Any, ...]] = []
    for record in records(device):
        kind = record["kind"]
        if kind == "tokens":
            told += [
                ("token", record["turn"], token, n, record["state"])
                for token, n in zip(record["ids"], record["n"], strict=True)
            ]
        elif kind in COMPARED:
            told.append((kind, *(record[name] for name in COMPARED[kind])))
    return told


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[FinishedRun, FinishedRun]:
    swift = run_fleet(tmp_path_factory.mktemp("swift"), *SAME, limit_s=300)
    python = run_fleet(tmp_path_factory.mktemp("python"), *SAME, PATH=WITHOUT_SWIFT)
    return swift, python


def test_every_trim_eviction_and_token_is_equal(pair: tuple[FinishedRun, FinishedRun]) -> None:
    swift, python = pair
    for ours, oracle in zip(swift.devices(), python.devices(), strict=True):
        assert records(ours)[0]["stand_in"] is False
        assert records(oracle)[0]["stand_in"] is True
        told, expected = story(ours), story(oracle)
        different = [pair for pair in zip(told, expected, strict=False) if pair[0] != pair[1]]
        assert different[:1] == []
        assert len(told) == len(expected)


def test_the_scenario_was_worth_comparing(pair: tuple[FinishedRun, FinishedRun]) -> None:
    for device in pair[0].devices():
        told = story(device)
        assert sum(entry[0] == "token" for entry in told) == 3000
        assert sum(entry[0] == "evict" for entry in told) >= 4
        assert sum(entry[0] == "trim" for entry in told) >= 2


def test_without_a_warning_of_the_kernel_neither_run_passes(
    pair: tuple[FinishedRun, FinishedRun],
) -> None:
    for run in pair:
        assert run.exit_code == 4
        assert {phone["outcome"] for phone in run.summary["phones"]} == {"ERROR"}
