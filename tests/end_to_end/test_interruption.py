"""A run that is interrupted or killed still reads, and leaves nobody behind."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.end_to_end.fleet_process import (
    FinishedRun,
    finish,
    kinds,
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

LONG = ("soak", "--devices", "all", "--duration", "120s")
pytestmark = pytest.mark.timeout(300)


def streaming(output: Path) -> bool:
    streams = list(output.glob("latest/devices/*/attempts/1/launches/1/stream.ndjson"))
    return len(streams) == 4 and all(stream.stat().st_size > 20_000 for stream in streams)


def start_long_run(folder: Path, *arguments: str, usbmux: str = "") -> subprocess.Popen[str]:
    output = folder / "runs"
    words = (*LONG, *arguments, "--output", str(output))
    run = start_fleet(folder, *words, USBMUXD_SOCKET_ADDRESS=usbmux)
    wait_for(lambda: streaming(output), 60, "streaming on four phones")
    return run


def test_ctrl_c_stops_the_apps_and_still_writes_the_report(tmp_path: Path) -> None:
    run = start_long_run(tmp_path, "--virtual")
    run.send_signal(signal.SIGINT)
    began = time.monotonic()
    finished = finish(run, tmp_path / "runs", limit_s=20)
    assert time.monotonic() - began < 20
    assert finished.exit_code == 130, finished.stderr
    assert finished.summary["exit_code"] == 130
    assert {phone["outcome"] for phone in finished.summary["phones"]} == {"ABORTED"}
    for device in finished.devices():
        assert records(device)[-1]["kind"] == "bye"
        assert records(device)[-1]["reason"] == "stopped"
        assert (device / "attempts" / "1" / "launches" / "1" / "journal.ndjson").stat().st_size
    assert (finished.path / "junit.xml").exists()
    assert (finished.path / "report" / "index.html").exists()
    assert processes_mentioning(str(tmp_path)) == []


def test_sigterm_ends_like_ctrl_c_with_its_own_code_from_the_first_moment(tmp_path: Path) -> None:
    output = tmp_path / "runs"
    high = ("--set", "policy.budget_tokens.6gb=9000")  # above the model's capacity
    run = start_fleet(tmp_path, *LONG, "--virtual", *high, "--output", str(output))
    began = time.monotonic()
    while not list(output.glob("*/run.json")):  # nothing else of a run is there before it
        assert time.monotonic() - began < 120, "no run directory"
        time.sleep(0.005)
    run.send_signal(signal.SIGTERM)
    finished = finish(run, output, limit_s=150)
    assert finished.exit_code == 143, finished.stderr
    assert "6gb phones, 9,000, is above the model's capacity: it is lowered" in finished.stderr
    assert {phone["outcome"] for phone in finished.summary["phones"]} == {"ABORTED"}
    assert (finished.path / "report" / "index.html").exists()


def test_a_killed_virtual_run_leaves_no_process_and_reads_as_aborted(tmp_path: Path) -> None:
    run = start_long_run(tmp_path, "--virtual")
    assert len(processes_mentioning(str(tmp_path))) > 1
    run.kill()
    run.communicate(timeout=10)
    wait_for(lambda: processes_mentioning(str(tmp_path)) == [], 30, "the end of every process")
    report = assert_readable_as_aborted(tmp_path)
    for device in report.devices():
        assert read_json(device / "verdict.json")["tokens_total"] > 0


def assert_readable_as_aborted(folder: Path) -> FinishedRun:
    report = run_fleet(folder, "report", str(folder / "runs" / "latest"))
    assert report.exit_code == 0, report.stderr
    assert report.summary["outcome"] == "ABORTED"
    assert report.summary["exit_code"] == 4
    assert (report.path / "junit.xml").exists()
    assert (report.path / "report" / "index.html").exists()
    assert not (report.path / "MANIFEST.sha256").exists()
    return report


def test_a_killed_run_on_served_phones_reads_while_app_and_keeper_go_on(tmp_path: Path) -> None:
    with served_phones(tmp_path, "--phones", "4") as farm:
        run = start_long_run(tmp_path, usbmux=farm["usbmux"])
        run.kill()
        run.communicate(timeout=10)
        assert_readable_as_aborted(tmp_path)
        keepers = [pid for pid in processes_mentioning(str(tmp_path)) if is_keeper(pid)]
        assert len(keepers) >= 4
    # The phones are gone now, and with them the sessions that the keepers hold.
    for pid in [pid for pid in processes_mentioning(str(tmp_path)) if is_keeper(pid)]:
        os.kill(pid, signal.SIGTERM)
    wait_for(lambda: processes_mentioning(str(tmp_path)) == [], 30, "the end of the keepers")


def is_keeper(pid: int) -> bool:
    try:
        return b"keeper" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_the_directory_reads_from_its_first_second(tmp_path: Path) -> None:
    output = tmp_path / "runs"
    run = start_fleet(tmp_path, *LONG, "--virtual", "--output", str(output))
    wait_for((output / "latest").exists, 60, "the run directory")
    run.kill()
    run.communicate(timeout=10)
    plan = json.loads((output / "latest" / "plan.json").read_bytes())
    assert len(plan["phones"]) == 4
    report = assert_readable_as_aborted(tmp_path)
    assert len(report.summary["phones"]) == 4
    assert all(kinds(device)["bye"] == 0 for device in report.devices() if has_telemetry(device))
    wait_for(lambda: processes_mentioning(str(tmp_path)) == [], 30, "the end of every process")


def has_telemetry(device: Path) -> bool:
    return (device / "telemetry.ndjson").exists()
