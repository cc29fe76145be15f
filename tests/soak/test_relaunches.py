"""A soak over several launches: each is launched in order, asked for its part, and kept apart."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest

from orchestrator.config.model import FleetConfig
from orchestrator.config.scenario_catalog import SMOKE
from orchestrator.device.events import AppExited
from orchestrator.domain.errors import DeviceError
from orchestrator.domain.outcome import Cause
from orchestrator.harness.models import witness_packages
from orchestrator.runlog.documents import EvidenceDocument, LaunchWindow, PlannedApp
from orchestrator.runlog.files import read_document
from orchestrator.soak.attempts import soak_phone
from orchestrator.soak.plan import Participants, make_plan
from orchestrator.soak.run_directory import RunRecorder
from orchestrator.soak.session import SessionOrder
from orchestrator.soak.session_state import SessionJournal, SessionState, Stage
from orchestrator.soak.streaming import StreamResult
from tests.device.scripted import HEALTHY, Script, ScriptedLink, ScriptedSession
from tests.soak.scripted_app import Pipe, ScriptedApp, record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from orchestrator.domain.deadline import Deadline
    from orchestrator.runlog.layout import DevicePaths

FIRST_PID, SECOND_PID = 101, 102


def uuid(number: int) -> str:
    return f"0000000{number}-2f0b-4c8f-9a57-0f1c2b3d4e5f"


def lines_of(number: int) -> list[bytes]:
    kinds = ("hello", "load", "tokens", "bye")
    return [record(seq, kind, launch=uuid(number)) for seq, kind in enumerate(kinds, start=1)]


class EndlessPhone(ScriptedLink):
    """Opens another developer session each time; pids go on."""

    async def developer(self, *, deadline: Deadline) -> ScriptedSession:
        launches = self.session.launches
        await self.session.aclose()
        self.session = ScriptedSession(self.script)
        self.session.launches = launches
        return await super().developer(deadline=deadline)


@dataclass
class RelaunchedApp(ScriptedApp):
    """Another launch each time; `signals` says what ends which."""

    signals: dict[int, int] = field(default_factory=dict)
    parts: list[dict[str, Any]] = field(default_factory=list)

    def obey(self, pipe: Pipe, command: dict[str, Any]) -> None:
        self.launch = uuid(len(self.link.session.launches))
        self.started = anyio.Event()
        super().obey(pipe, command)

    def _on_start(self, pipe: Pipe, command: dict[str, Any]) -> None:
        number = len(self.link.session.launches)
        self.parts.append(command["scenario"])
        lines, signal = lines_of(number), self.signals.get(number)
        for line in lines if signal is None else lines[:-1]:
            pipe.put(line)
        code = 0 if signal is None else None
        self.link.session.tell(AppExited(100 + number, code, signal))
        pipe.end()


@dataclass
class Bench:
    link: EndlessPhone
    recorder: RunRecorder
    order: SessionOrder
    file: Path

    @property
    def paths(self) -> DevicePaths:
        return self.recorder.paths.device(self.order.phone.directory)

    async def run(self, journal: SessionJournal | None = None) -> EvidenceDocument:
        journal = journal or SessionJournal(self.file)
        with anyio.fail_after(60):
            await soak_phone(self.order, self.link, self.recorder, anyio.Event(), journal)
        return read_document(self.paths.attempt(1).evidence, EvidenceDocument)

    def state(self) -> SessionState:
        return msgspec.json.decode(self.file.read_bytes(), type=SessionState)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    script = Script()
    link = EndlessPhone(script, ScriptedSession(script), health=replace(HEALTHY, virtual=None))
    for number in (1, 2):
        link.files[f"Documents/fleet/{uuid(number)}.ndjson"] = b"".join(lines_of(number))
    packages = {package.quantization: package for package in witness_packages()}
    app = PlannedApp(kind="swift", bundle_id="dev.example", name="Harness", package_sha256="0")
    scenario = replace(SMOKE, relaunches=1, duration_s=10.0, stop_after_tokens=7)
    participants = Participants((link.phone,), (), ())
    plan = make_plan("run", 1, FleetConfig(), scenario, participants, app, packages)
    recorder = RunRecorder.begin(tmp_path, plan, "", virtual=False)
    order = SessionOrder(
        plan=plan,
        phone=plan.phones[0],
        ipa=tmp_path / "app.ipa",
        packages=tuple(packages.values()),
        duration_s=10.0,
        defect=None,
        min_battery_percent=30.0,
        report_wait_s=0.1,
    )
    yield Bench(link, recorder, order, tmp_path / "s.session.json")
    recorder.events.close()
    await link.session.aclose()


async def test_the_app_is_launched_again_after_its_farewell_and_all_is_kept(bench: Bench) -> None:
    app = RelaunchedApp(bench.link)
    evidence = await bench.run()
    assert app.commands == ["hello", "start", "hello", "start"]
    assert [(part["duration_s"], part["stop_after_tokens"]) for part in app.parts] == [
        (5.0, 4),
        (5.0, 3),
    ]
    assert [(w.number, w.pid, w.launch) for w in evidence.launches] == [
        (1, FIRST_PID, uuid(1)),
        (2, SECOND_PID, uuid(2)),
    ]
    assert [(end.pid, end.exit_code) for end in evidence.exits] == [(FIRST_PID, 0), (SECOND_PID, 0)]
    assert evidence.journal_pulled
    assert bench.paths.telemetry.read_bytes() == b"".join([*lines_of(1), *lines_of(2)])
    for number in (1, 2):
        assert bench.paths.attempt(1).stream(number).read_bytes() == b"".join(lines_of(number))
        assert bench.paths.attempt(1).journal(number).exists()
    assert bench.link.script.calls.count("install") == 1


async def test_each_launch_has_a_token_of_its_own(bench: Bench) -> None:
    RelaunchedApp(bench.link)
    await bench.run()
    tokens = {environment["FLEET_TOKEN"] for _, environment, _ in bench.link.session.launches}
    assert len(tokens) == 2


async def test_an_app_that_dies_is_not_launched_again(bench: Bench) -> None:
    RelaunchedApp(bench.link, signals={1: 6})
    evidence = await bench.run()
    assert [window.number for window in evidence.launches] == [1]
    assert bench.link.script.calls.count("launch") == 1


async def test_a_relaunch_that_fails_is_the_labs_error_and_keeps_the_first_launch(
    bench: Bench,
) -> None:
    RelaunchedApp(bench.link)
    original = bench.link.developer

    async def once(*, deadline: Deadline) -> ScriptedSession:
        if bench.link.script.calls.count("launch"):
            raise DeviceError("bench-01", "dvt", "developer", "broken", cause=Cause.NOT_READY)
        return await original(deadline=deadline)

    bench.link.developer = once  # type: ignore[method-assign]
    evidence = await bench.run()
    assert evidence.cause_hint == Cause.NOT_READY
    assert [window.number for window in evidence.launches] == [1]
    assert bench.paths.telemetry.read_bytes() == b"".join(lines_of(1))


async def test_another_orchestrator_goes_on_with_the_next_launch(bench: Bench) -> None:
    app = RelaunchedApp(bench.link)
    bench.link.session.launches = [("dev.example", {}, [])]  # the dead one's
    window = LaunchWindow(number=1, pid=FIRST_PID, launch=uuid(1), started_s=1.0, ended_s=2.0)
    left = SessionState(
        stage=Stage.RELAUNCHING, launch=2, facts=HEALTHY, windows=[window], stream=StreamResult()
    )
    bench.file.write_bytes(msgspec.json.encode(left))
    evidence = await bench.run(SessionJournal.reopened(bench.file))
    assert app.commands == ["hello", "start"]
    assert app.parts[0]["stop_after_tokens"] == 3
    assert [known.number for known in evidence.launches] == [1, 2]
    assert bench.paths.telemetry.read_bytes() == b"".join([*lines_of(1), *lines_of(2)])
    assert "install" not in bench.link.script.calls
    assert bench.state().stage is Stage.DONE
