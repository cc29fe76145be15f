"""A session whose orchestrator died goes on in another one, from wherever it was left."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio
import msgspec
import pytest

from orchestrator.config.model import FleetConfig
from orchestrator.config.scenario_catalog import SMOKE
from orchestrator.device.events import AppExited
from orchestrator.domain.errors import DeviceError
from orchestrator.domain.outcome import Cause
from orchestrator.harness.models import witness_packages
from orchestrator.runlog.documents import EvidenceDocument, PlannedApp, RunDocument
from orchestrator.runlog.events import read_events
from orchestrator.runlog.files import read_document
from orchestrator.soak.attempts import soak_phone
from orchestrator.soak.plan import Participants, make_plan
from orchestrator.soak.run_directory import RunRecorder
from orchestrator.soak.session import SessionOrder
from orchestrator.soak.session_state import RememberedError, SessionJournal, SessionState, Stage
from orchestrator.soak.streaming import StreamResult
from orchestrator.soak.watch import Ending
from tests.device.scripted import HEALTHY, Script, ScriptedLink, ScriptedSession
from tests.soak.scripted_app import LAUNCH, PID, ScriptedApp, record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from orchestrator.runlog.layout import DevicePaths

LINES = [record(1, "hello"), record(2, "load"), record(3, "tokens")]
BYE = record(4, "bye")
JOURNAL = f"Documents/fleet/{LAUNCH}.ndjson"
RUNNING = SessionState(
    stage=Stage.RUNNING,
    token="t" * 32,
    started_s=100.0,
    pid=PID,
    facts=HEALTHY,
    stream=StreamResult(launch=LAUNCH),
)


@dataclass
class Bench:
    """A phone, a run directory, and what the dead orchestrator left of the session."""

    link: ScriptedLink
    recorder: RunRecorder
    order: SessionOrder
    file: Path

    @property
    def paths(self) -> DevicePaths:
        return self.recorder.paths.device(self.order.phone.directory)

    def left(self, state: SessionState, *lines: bytes) -> None:
        self.file.write_bytes(msgspec.json.encode(state))
        stream = self.paths.attempt(1).stream(1)
        stream.parent.mkdir(parents=True)
        stream.write_bytes(b"".join(lines))

    async def go_on(self) -> EvidenceDocument:
        journal = SessionJournal.reopened(self.file)
        with anyio.fail_after(20):
            await soak_phone(self.order, self.link, self.recorder, anyio.Event(), journal)
        return read_document(self.paths.attempt(1).evidence, EvidenceDocument)

    def state(self) -> SessionState:
        return msgspec.json.decode(self.file.read_bytes(), type=SessionState)

    def kinds(self) -> list[str]:
        return [event.kind for event in read_events(self.recorder.paths.events)]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    script = Script()
    link = ScriptedLink(script, ScriptedSession(script), health=replace(HEALTHY, virtual=None))
    packages = {package.quantization: package for package in witness_packages()}
    app = PlannedApp(kind="swift", bundle_id="dev.example", name="Harness", package_sha256="0")
    participants = Participants((link.phone,), (), ())
    plan = make_plan("run", 1, FleetConfig(), SMOKE, participants, app, packages)
    RunRecorder.begin(tmp_path, plan, "", virtual=False).events.close()
    first = RunRecorder.begin(tmp_path / "other", plan, "", virtual=False)
    recorder = RunRecorder.reopen(first.paths)
    first.events.close()
    order = SessionOrder(
        plan=plan,
        phone=plan.phones[0],
        ipa=tmp_path / "app.ipa",
        packages=tuple(packages.values()),
        duration_s=1.0,
        defect=None,
        min_battery_percent=30.0,
        report_wait_s=0.1,
    )
    yield Bench(link, recorder, order, tmp_path / "s.session.json")
    recorder.events.close()
    await link.session.aclose()


def app_that_runs(bench: Bench, lines: list[bytes]) -> ScriptedApp:
    app = ScriptedApp(bench.link, lines)
    app.started.set()
    bench.link.keeper_lives = True
    bench.link.session.running.add(PID)
    bench.link.session.app_pid = PID
    return app


async def test_a_running_app_is_followed_from_the_record_after_the_last(bench: Bench) -> None:
    app = app_that_runs(bench, LINES)
    bench.left(RUNNING, *LINES[:2])
    bench.link.files[JOURNAL] = b"".join([*LINES, BYE])
    evidence = await bench.go_on()
    assert app.commands == ["hello", "resume"]
    assert app.resumed_from == [2]
    assert bench.paths.attempt(1).stream(1).read_bytes() == b"".join([*LINES, BYE])
    assert bench.paths.telemetry.read_bytes() == b"".join([*LINES, BYE])
    assert [(end.pid, end.exit_code) for end in evidence.exits] == [(PID, 0)]
    assert evidence.launches[0].started_s == 100.0
    assert evidence.cause_hint is None
    assert "launch" not in bench.link.script.calls
    assert bench.state().stage is Stage.DONE


async def test_a_line_that_the_death_cut_is_asked_for_again(bench: Bench) -> None:
    app = app_that_runs(bench, LINES)
    bench.left(RUNNING, LINES[0], LINES[1][:20])
    await bench.go_on()
    assert app.resumed_from == [1]
    assert bench.paths.telemetry.read_bytes() == b"".join([*LINES, BYE])


async def test_an_app_that_ended_meanwhile_is_known_by_its_exit_and_journal(bench: Bench) -> None:
    bench.link.keeper_lives = True
    bench.link.session.tell(AppExited(PID, 0, None))
    bench.left(RUNNING, *LINES[:2])
    bench.link.files[JOURNAL] = b"".join([*LINES, BYE])
    evidence = await bench.go_on()
    assert [end.exit_code for end in evidence.exits] == [0]
    assert evidence.cause_hint is None
    assert bench.paths.telemetry.read_bytes() == b"".join([*LINES, BYE])


async def test_a_launch_of_which_no_pid_was_noted_is_found_at_the_keeper(bench: Bench) -> None:
    app = ScriptedApp(bench.link, LINES)
    bench.link.keeper_lives = True
    bench.link.session.app_pid = PID
    bench.left(msgspec.structs.replace(RUNNING, pid=None, stream=StreamResult()))
    evidence = await bench.go_on()
    assert app.commands == ["hello", "start"]
    assert evidence.launches[0].pid == PID
    assert "launch" not in bench.link.script.calls


@pytest.mark.parametrize("stage", [Stage.PREPARING, Stage.RUNNING])
async def test_a_session_without_an_app_begins_again(stage: Stage, bench: Bench) -> None:
    ScriptedApp(bench.link, LINES)
    bench.left(SessionState(stage=stage))
    evidence = await bench.go_on()
    assert bench.link.script.calls.count("launch") == 1
    assert [end.exit_code for end in evidence.exits] == [0]


async def test_without_keeper_an_app_that_lives_is_followed(bench: Bench) -> None:
    app = app_that_runs(bench, LINES)
    bench.link.keeper_lives = False
    bench.left(RUNNING, *LINES[:1])
    evidence = await bench.go_on()
    assert app.resumed_from == [1]
    assert evidence.cause_hint is None
    assert "keeper_gone" in bench.kinds()


async def test_without_keeper_the_journal_tells_how_the_app_ended(bench: Bench) -> None:
    bench.left(RUNNING, *LINES[:1])
    bench.link.files[JOURNAL] = b"".join([*LINES, BYE])
    evidence = await bench.go_on()
    assert evidence.cause_hint is None
    assert bench.paths.telemetry.read_bytes() == b"".join([*LINES, BYE])


async def test_an_end_that_nobody_saw_is_the_labs_and_says_so(bench: Bench) -> None:
    bench.left(RUNNING, *LINES[:1])
    bench.link.files[JOURNAL] = b"".join(LINES)
    evidence = await bench.go_on()
    assert evidence.cause_hint == Cause.DEVICE_LOST
    assert "ended while nobody watched" in str(evidence.error)
    assert bench.paths.telemetry.read_bytes() == b"".join(LINES)


async def test_a_session_that_was_collecting_only_collects(bench: Bench) -> None:
    ended = StreamResult(launch=LAUNCH, ending=Ending.STALLED, killed_by_host=True)
    error = DeviceError("bench-01", "dvt", "soak", "broken", cause=Cause.TELEMETRY_LOST)
    state = msgspec.structs.replace(
        RUNNING, stage=Stage.COLLECTING, stream=ended, error=RememberedError.of(error)
    )
    bench.left(state, *LINES)
    evidence = await bench.go_on()
    assert evidence.killed_by_host
    assert evidence.cause_hint == Cause.TELEMETRY_LOST
    assert evidence.error == str(error)
    assert not {"launch", "developer", "install"} & set(bench.link.script.calls)


async def test_a_session_that_was_done_is_left_alone(bench: Bench) -> None:
    bench.left(SessionState(stage=Stage.DONE))
    await soak_phone(
        bench.order,
        bench.link,
        bench.recorder,
        anyio.Event(),
        SessionJournal.reopened(bench.file),
    )
    assert bench.link.script.calls == []


async def test_reports_that_were_there_before_the_launch_stay_old(bench: Bench) -> None:
    app_that_runs(bench, LINES)
    bench.link.reports = {"/old.ips": b"old", "/new.ips": b"new"}
    bench.left(msgspec.structs.replace(RUNNING, known_reports=["/old.ips:3"]))
    evidence = await bench.go_on()
    assert [report.device_path for report in evidence.reports] == ["/new.ips"]


async def test_the_file_with_the_token_is_private_from_the_start(bench: Bench) -> None:
    ScriptedApp(bench.link, LINES)
    journal = SessionJournal(bench.file)
    await soak_phone(bench.order, bench.link, bench.recorder, anyio.Event(), journal)
    token = bench.link.session.launches[0][1]["FLEET_TOKEN"]
    assert bench.state().token == token
    assert bench.file.stat().st_mode & 0o777 == 0o600
    for path in bench.recorder.paths.root.rglob("*"):
        if path.is_file():
            assert token.encode() not in path.read_bytes()


async def test_a_resumed_run_names_its_new_owner(bench: Bench) -> None:
    document = read_document(bench.recorder.paths.run, RunDocument)
    assert document.owner_pid == os.getpid()
    assert len(document.resumed_s) == 1
    assert "run_resumed" in bench.kinds()
