"""How far a run is, read from a directory that is being written."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import msgspec
import pytest

from orchestrator.config.model import FleetConfig
from orchestrator.config.scenario_catalog import SMOKE
from orchestrator.domain.errors import RunDirectoryError
from orchestrator.harness.models import witness_packages
from orchestrator.runlog.documents import PlanDocument, PlannedApp
from orchestrator.runlog.files import read_document, write_document
from orchestrator.runlog.layout import RunPaths
from orchestrator.soak.plan import Participants, make_plan
from orchestrator.soak.progress import process_lives, run_progress
from orchestrator.soak.run_directory import RunRecorder
from tests.device.phones import phone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from orchestrator.soak.progress import PhoneProgress

NOW_S = 2_000_000_000.0
UDIDS = ("00008130-000000000000000A", "00008130-000000000000000B")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunRecorder]:
    packages = {package.quantization: package for package in witness_packages()}
    app = PlannedApp(kind="swift", bundle_id="dev.example", name="Harness", package_sha256="0")
    phones = tuple(phone(f"bench-{udid[-1]}", udid=udid) for udid in UDIDS)
    participants = Participants(phones, (), ())
    plan = make_plan("run", 1, FleetConfig(), SMOKE, participants, app, packages)
    recorder = RunRecorder.begin(tmp_path, plan, "", virtual=True)
    yield recorder
    recorder.events.close()


def phones_of(run: RunRecorder) -> list[PhoneProgress]:
    return run_progress(run.paths, NOW_S, owner_lives=True).phones


def write_stream(run: RunRecorder, attempt: int, *lines: str, age_s: float) -> None:
    (directory,) = (run.paths.device("bench-A-0000000A"),)
    stream = directory.attempt(attempt).stream(1)
    stream.parent.mkdir(parents=True)
    stream.write_text("".join(lines))
    os.utime(stream, (NOW_S - age_s, NOW_S - age_s))


def line(seconds: float, tokens: int | None = None) -> str:
    fields = {} if tokens is None else {"tokens_total": tokens}
    return json.dumps({"kind": "sample", "t_ns": int(seconds * 1e9), **fields}) + "\n"


def test_a_phone_waits_until_its_first_phase(run: RunRecorder) -> None:
    assert [entry.phase for entry in phones_of(run)] == ["waiting", "waiting"]


def test_a_soaking_phone_has_tokens_and_time_left(run: RunRecorder) -> None:
    run.event("phase", udid=UDIDS[0], attempt=1, name="soak")
    write_stream(run, 1, line(1.0, 100), line(15.0), '{"kind":"samp', age_s=3.0)
    entry = phones_of(run)[0]
    assert (entry.phase, entry.tokens_total) == ("soak", 100)
    assert entry.inference_left_s == pytest.approx(SMOKE.duration_s - 15)
    assert entry.last_record_age_s == pytest.approx(3.0)


def test_the_newest_attempt_is_shown(run: RunRecorder) -> None:
    run.event("session_ended", udid=UDIDS[0], attempt=1, cause="device_lost")
    run.event("phase", udid=UDIDS[0], attempt=2, name="soak")
    write_stream(run, 2, line(5.0, 7), age_s=0.0)
    entry = phones_of(run)[0]
    assert (entry.attempt, entry.phase, entry.tokens_total) == (2, "soak", 7)


def test_an_ended_session_has_no_time_left(run: RunRecorder) -> None:
    run.event("session_ended", udid=UDIDS[1], attempt=1, cause=None)
    entry = phones_of(run)[1]
    assert (entry.phase, entry.inference_left_s) == ("ended", None)


@pytest.mark.parametrize(("lives", "state"), [(True, "running"), (False, "left")])
def test_a_run_whose_process_died_is_left(run: RunRecorder, lives: bool, state: str) -> None:
    assert run_progress(run.paths, NOW_S, owner_lives=lives).state == state


def test_a_run_that_ended_says_so(run: RunRecorder) -> None:
    run.finish(None)
    assert run_progress(run.paths, NOW_S, owner_lives=False).state == "ended"


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError):
        run_progress(RunPaths(tmp_path), NOW_S, owner_lives=False)


def test_our_own_process_lives() -> None:
    assert process_lives(os.getpid())


def test_the_newest_launch_is_shown_and_earlier_ones_count(run: RunRecorder) -> None:
    plan = read_document(run.paths.plan, PlanDocument)
    scenario = {**plan.scenario, "relaunches": {"count": 2}}
    write_document(run.paths.plan, msgspec.structs.replace(plan, scenario=scenario))
    run.event("phase", udid=UDIDS[0], attempt=1, name="soak")
    run.event("launched", udid=UDIDS[0], attempt=1, pid=7, launch=2)
    write_stream(run, 1, line(14.0, 900), age_s=9.0)
    stream = run.paths.device("bench-A-0000000A").attempt(1).stream(2)
    stream.parent.mkdir(parents=True)
    stream.write_text(line(5.0, 50))
    entry = phones_of(run)[0]
    assert entry.tokens_total == 50
    assert entry.inference_left_s == pytest.approx(SMOKE.duration_s * 2 / 3 - 5)
