"""`fleet plan` says before a run what the phones then record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.end_to_end.fleet_process import QUICK, WITHOUT_SWIFT, records, run_fleet

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.end_to_end.fleet_process import FinishedRun


def recorded_trims(device: Path) -> list[int]:
    """For each trim, how many tokens the app had sampled before it."""
    trims, tokens = [], 0
    for record in records(device):
        if record["kind"] == "tokens":
            tokens += len(record["ids"])
        elif record["kind"] == "trim":
            trims.append(tokens)
    return trims


def test_every_trim_before_the_ballast_was_predicted(
    quick_runs: Mapping[str, FinishedRun], tmp_path: Path
) -> None:
    answer = run_fleet(tmp_path, "plan", "--virtual", "--json", *QUICK)
    assert answer.exit_code == 0, answer.stderr
    plan = json.loads(answer.stdout)
    run = quick_runs["clean"]
    phones = {phone["udid"][-8:]: phone["forecast"] for phone in plan["phones"]}
    assert len(run.devices()) == len(phones) == 4
    for device in run.devices():
        forecast = phones[device.name[-8:]]
        until = forecast["exact_until"]
        predicted = [at for at in forecast["trims"] if at < until]
        assert [at for at in recorded_trims(device) if at < until] == predicted
    assert any(phone["trims"][0] < phone["exact_until"] for phone in phones.values())


def test_a_plan_names_checks_exercise_and_who_is_missing(tmp_path: Path) -> None:
    answer = run_fleet(tmp_path, "plan", "--virtual", "--scenario", "pressure", "--seed", "7")
    assert answer.exit_code == 0
    assert "at least: 3 trims, 3 evictions by the kernel's warning" in answer.stdout
    assert "must hold: budget.never-exceeded" in answer.stdout
    assert "vp-03  iPhone 15 Pro  iOS 18.6  8gb  int8  budget 2048 tokens" in answer.stdout
    assert all(len(line) <= 100 for line in answer.stdout.splitlines())
    assert not (tmp_path / "runs").exists()


def test_a_plan_says_that_there_is_no_swift_and_what_follows(tmp_path: Path) -> None:
    words = ("plan", "--virtual", "--scenario", "background")
    answer = run_fleet(tmp_path, *words, PATH=WITHOUT_SWIFT)
    assert answer.exit_code == 0
    assert "app: the Python stand-in" in answer.stdout
    assert "docs/how-to/get-swift.md has the steps" in answer.stdout
    assert "it does not play background: the run would exit 5" in answer.stdout


def test_a_plan_for_phones_that_are_not_there_is_refused_as_the_soak_is(tmp_path: Path) -> None:
    answer = run_fleet(tmp_path, "plan", "--devices", "all", USBMUXD_SOCKET_ADDRESS="127.0.0.1:1")
    assert answer.exit_code == 3
    assert "--virtual" in answer.stderr
