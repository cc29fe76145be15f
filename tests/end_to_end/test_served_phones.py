"""Phones that somebody else serves: found like real ones, held by one run, marked virtual."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.end_to_end.fleet_process import (
    QUICK,
    read_json,
    run_fleet,
    served_phones,
    start_fleet,
    wait_for,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from tests.end_to_end.fleet_process import FinishedRun

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[dict[str, Any]]:
    with served_phones(tmp_path, "--phones", "4") as description:
        yield description


def models_sent(run: FinishedRun) -> set[bool]:
    """Whether models were pushed: all of them, none, or some."""
    return {event["facts"]["sent"] for event in run.events("model")}


def test_a_plain_soak_marks_served_phones_and_one_by_tunneld_pushes_no_model_again(
    farm: dict[str, Any], tmp_path: Path
) -> None:
    address, tunneld = farm["usbmux"], farm["tunneld"]
    run = run_fleet(tmp_path, "soak", *QUICK, USBMUXD_SOCKET_ADDRESS=address, limit_s=200)
    assert run.exit_code == 0, run.stdout + run.stderr
    assert run.summary["virtual"] is True
    assert {phone["udid"] for phone in run.summary["phones"]} == {
        phone["udid"] for phone in farm["phones"]
    }
    for device in run.devices():
        assert read_json(device / "verdict.json")["virtual"] is True
    assert models_sent(run) == {True}

    config = tmp_path / "fleet.yaml"
    config.write_text(
        f'sources:\n  - {{name: served, usbmux: "{address}", tunneld: "{tunneld}"}}\n'
    )
    again = run_fleet(tmp_path, "soak", *QUICK, "--config", str(config), limit_s=200)
    assert again.exit_code == 0, again.stdout + again.stderr
    assert {phone["outcome"] for phone in again.summary["phones"]} == {"PASS"}
    roads = {event["facts"]["road"] for event in again.events("developer_session")}
    assert roads == {"tunneld"}
    assert models_sent(again) == {False}


def test_a_second_run_on_the_same_phones_is_told_who_holds_them(
    farm: dict[str, Any], tmp_path: Path
) -> None:
    address = farm["usbmux"]
    output = tmp_path / "runs"
    first = start_fleet(
        tmp_path, "soak", "--duration", "60s", "--output", str(output),
        USBMUXD_SOCKET_ADDRESS=address,
    )  # fmt: skip
    wait_for((output / "latest").exists, 60, "the first run")
    run_id = read_json(output / "latest" / "run.json")["run_id"]
    second = run_fleet(tmp_path, "soak", "--devices", "vp-02", USBMUXD_SOCKET_ADDRESS=address)
    assert second.exit_code == 6
    assert second.stderr.count("\n") == 1
    assert "vp-02" in second.stderr
    assert run_id in second.stderr
    first.terminate()
    first.communicate(timeout=30)


def test_devices_lists_what_is_served(farm: dict[str, Any], tmp_path: Path) -> None:
    listed = run_fleet(tmp_path, "devices", "--json", USBMUXD_SOCKET_ADDRESS=farm["usbmux"])
    assert listed.exit_code == 0
    for phone in farm["phones"]:
        assert phone["udid"] in listed.stdout
        assert phone["model"] in listed.stdout


def test_the_doctor_tells_a_locked_phone_from_fit_ones(
    farm: dict[str, Any], tmp_path: Path
) -> None:
    address = farm["usbmux"]
    well = run_fleet(tmp_path, "doctor", USBMUXD_SOCKET_ADDRESS=address)
    assert well.exit_code == 0, well.stdout
    assert "a soak could start now" in well.stdout
    locked = run_fleet(tmp_path, "virtual", "fault", "vp-03", "lock", "--control", farm["control"])
    assert locked.exit_code == 0, locked.stderr
    ill = run_fleet(tmp_path, "doctor", "--json", USBMUXD_SOCKET_ADDRESS=address)
    assert ill.exit_code == 3
    broken = [c for c in json.loads(ill.stdout)["checks"] if c["state"] == "failed"]
    assert [(c["subject"], c["reason"]) for c in broken] == [("vp-03", "locked")]
