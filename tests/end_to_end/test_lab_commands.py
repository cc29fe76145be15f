"""Who holds phones, how far a run is, and how it is ended: from other processes than its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.end_to_end.fleet_process import (
    FinishedRun,
    finish,
    processes_mentioning,
    read_json,
    records,
    run_fleet,
    served_phones,
    start_fleet,
    wait_for,
)

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def usbmux(tmp_path: Path) -> Iterator[str]:
    with served_phones(tmp_path, "--phones", "2") as farm:
        yield farm["usbmux"]
    wait_for(lambda: processes_mentioning(str(tmp_path)) == [], 30, "the end of every process")


def start_run(folder: Path, usbmux: str, *words: str) -> subprocess.Popen[str]:
    output = str(folder / "runs")
    return start_fleet(
        folder, "soak", "--duration", "120s", "--output", output, *words,
        USBMUXD_SOCKET_ADDRESS=usbmux,
    )  # fmt: skip


def ask(folder: Path, *words: str) -> FinishedRun:
    return run_fleet(folder, *words)


def status(folder: Path) -> dict[str, Any]:
    answer = ask(folder, "status", "--output", str(folder / "runs"), "--json")
    return json.loads(answer.stdout) if answer.exit_code == 0 else {}


def soaks(folder: Path) -> bool:
    return all(
        phone["tokens_total"] for phone in status(folder).get("phones", [{"tokens_total": 0}])
    )


def test_a_run_is_seen_from_outside_and_stopped_after_its_process_died(
    usbmux: str, tmp_path: Path
) -> None:
    run = start_run(tmp_path, usbmux)
    wait_for(lambda: soaks(tmp_path), 60, "tokens on two phones")
    seen = status(tmp_path)
    assert seen["state"] == "running"
    assert {phone["phase"] for phone in seen["phones"]} == {"soak"}
    assert all(100 < phone["inference_left_s"] <= 120 for phone in seen["phones"])
    held = json.loads(ask(tmp_path, "who", "--json").stdout)
    assert [(owner["pid"], owner["run_id"]) for owner in held] == [(run.pid, seen["run_id"])] * 2
    refused = ask(tmp_path, "unlock", "vp-01")
    assert (refused.exit_code, "within its time" in refused.stderr) == (6, True)
    early = ask(tmp_path, "resume", "--output", str(tmp_path / "runs"))
    assert (early.exit_code, seen["run_id"] in early.stderr) == (6, True)

    run.kill()
    run.communicate(timeout=10)
    assert status(tmp_path)["state"] == "left"
    assert json.loads(ask(tmp_path, "who", "--json").stdout) == []

    output = tmp_path / "runs"
    stopped = run_fleet(tmp_path, "stop", "--output", str(output), limit_s=30)
    assert stopped.exit_code == 4, stopped.stderr
    assert {phone["outcome"] for phone in stopped.summary["phones"]} == {"ABORTED"}
    for device in stopped.devices():
        assert records(device)[-1]["kind"] == "bye"
        assert records(device)[-1]["reason"] == "stopped"
    assert read_json(stopped.path / "run.json")["interrupted_by"] == "stop"
    assert (stopped.path / "MANIFEST.sha256").exists()
    assert status(tmp_path)["state"] == "ended"
    assert list((tmp_path / "home" / "state" / "runs").iterdir()) == []


@pytest.mark.deep
def test_a_run_that_waits_begins_when_the_other_one_is_kicked(usbmux: str, tmp_path: Path) -> None:
    first = start_run(tmp_path, usbmux)
    wait_for(lambda: soaks(tmp_path), 60, "tokens on two phones")
    first_id = status(tmp_path)["run_id"]
    second = start_run(tmp_path, usbmux, "--wait", "--devices", "vp-02")
    assert second.stderr is not None
    line = second.stderr.readline()
    while not line.startswith("waiting: "):
        assert line, "the second run does not wait"
        line = second.stderr.readline()
    assert first_id in line

    kicked = run_fleet(tmp_path, "unlock", "vp-02", "--kick", limit_s=40)
    assert kicked.exit_code == 0, kicked.stderr
    assert finish(first, tmp_path / "runs", limit_s=20).exit_code == 143
    wait_for(lambda: status(tmp_path).get("run_id") not in (None, first_id), 30, "the second run")
    stopped = run_fleet(tmp_path, "stop", "--output", str(tmp_path / "runs"), limit_s=40)
    assert stopped.exit_code == 0, stopped.stderr
    assert finish(second, tmp_path / "runs", limit_s=20).exit_code == 143
