"""One phone's session: every way it can end leaves evidence, and the first failure sticks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio
import pytest

from orchestrator.config.model import FleetConfig
from orchestrator.config.scenario_catalog import SMOKE
from orchestrator.device.events import SessionLost
from orchestrator.domain.errors import DeadlineExceededError, DeviceError
from orchestrator.domain.outcome import Cause
from orchestrator.harness.models import witness_packages
from orchestrator.runlog.documents import PlannedApp
from orchestrator.runlog.events import read_events
from orchestrator.runlog.merge import MergeCounts
from orchestrator.soak.plan import Participants, make_plan
from orchestrator.soak.run_directory import RunRecorder
from orchestrator.soak.session import PhoneSession, SessionOrder
from orchestrator.soak.watch import Ending
from tests.device.scripted import HEALTHY, Script, ScriptedLink, ScriptedSession
from tests.soak.scripted_app import LAUNCH, PID, ScriptedApp, record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from orchestrator.domain.deadline import Deadline
    from orchestrator.soak.findings import SessionFindings

LINES = [record(1, "hello"), record(2, "load"), record(3, "tokens")]
JOURNAL = f"Documents/fleet/{LAUNCH}.ndjson"


@dataclass
class Bench:
    """One phone, its run directory, and the stop of the campaign."""

    link: ScriptedLink
    recorder: RunRecorder
    order: SessionOrder
    stop: anyio.Event

    async def run(self) -> SessionFindings:
        paths = self.recorder.paths.device(self.order.phone.directory).attempt(1)
        session = PhoneSession(self.order, self.link, paths, self.recorder, self.stop)
        with anyio.fail_after(20):
            return await session.run()

    def events(self, kind: str) -> list[dict[str, object]]:
        found = read_events(self.recorder.paths.events)
        return [dict(event.facts) for event in found if event.kind == kind]

    def stream(self) -> bytes:
        paths = self.recorder.paths.device(self.order.phone.directory).attempt(1)
        return paths.stream(1).read_bytes()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    script = Script()
    # A real phone waits for reports as long as it is told; a virtual one states its own delay.
    health = replace(HEALTHY, virtual=None)
    link = ScriptedLink(script, ScriptedSession(script), health=health)
    packages = {package.quantization: package for package in witness_packages()}
    app = PlannedApp(kind="swift", bundle_id="dev.example", name="Harness", package_sha256="0")
    participants = Participants((link.phone,), (), ())
    plan = make_plan("run", 1, FleetConfig(), SMOKE, participants, app, packages)
    recorder = RunRecorder.begin(tmp_path, plan, "", virtual=True)
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
    yield Bench(link, recorder, order, anyio.Event())
    recorder.events.close()
    await link.session.aclose()


async def test_a_complete_soak_leaves_stream_journal_and_a_clean_exit(bench: Bench) -> None:
    app = ScriptedApp(bench.link, LINES)
    bench.link.files[JOURNAL] = b"journal"
    findings = await bench.run()
    assert findings.stream.ending is Ending.COMPLETED
    assert [(end.pid, end.exit_code) for end in findings.stream.exits] == [(PID, 0)]
    assert findings.cause_hint() is None
    assert findings.journal_pulled
    assert bench.stream() == b"".join(LINES) + record(4, "bye")
    assert app.commands == ["hello", "start"]
    assert bench.link.script.calls[-1] != "aclose"
    assert "aclose" in bench.link.script.calls


async def test_models_are_in_the_container_before_the_launch(bench: Bench) -> None:
    ScriptedApp(bench.link, LINES)
    await bench.run()
    for package in bench.order.packages:
        assert bench.link.files[f"{package.folder}/model.json"] == package.files["model.json"]
    calls = bench.link.script.calls
    assert max(at for at, call in enumerate(calls) if call == "push") < calls.index("launch")


async def test_the_token_and_the_defect_travel_in_the_environment_alone(bench: Bench) -> None:
    ScriptedApp(bench.link, LINES)
    bench.order = replace(bench.order, defect="never-trim")
    await bench.run()
    (_, environment, arguments) = bench.link.session.launches[0]
    assert environment["FLEET_DEFECT"] == "never-trim"
    assert arguments == []
    written = bench.recorder.paths.events.read_text()
    assert environment["FLEET_TOKEN"] not in written
    assert "never-trim" not in written


async def test_a_crash_is_an_exit_with_its_signal_and_reports_are_awaited(bench: Bench) -> None:
    ScriptedApp(bench.link, LINES, then="crash")
    findings = await bench.run()
    assert findings.stream.ending is Ending.EXITED
    assert bench.events("app_exited") == [{"pid": PID, "exit_code": None, "signal": 6}]
    assert findings.died
    assert bench.link.script.calls.count("pull_reports") >= 1


async def test_a_broken_connection_resumes_after_the_last_record(bench: Bench) -> None:
    app = ScriptedApp(bench.link, LINES, then="hang up")
    findings = await bench.run()
    assert app.resumed_from == [3]
    assert findings.stream.ending is Ending.COMPLETED
    assert bench.stream() == b"".join(LINES) + record(4, "bye")


async def test_a_refused_scenario_ends_the_session_with_its_reason(bench: Bench) -> None:
    ScriptedApp(bench.link, refuses="start")
    findings = await bench.run()
    assert findings.stream.ending is Ending.REFUSED
    assert findings.cause_hint() is Cause.NOT_READY
    assert "no such thing" in str(findings.stream.error)
    assert "kill" in bench.link.script.calls


async def test_a_lost_developer_session_is_a_lost_phone(bench: Bench) -> None:
    bench.order = replace(bench.order, return_grace_s=0.05)
    bench.link.session.tell(SessionLost("unplugged"))
    findings = await bench.run()
    assert findings.cause_hint() is Cause.DEVICE_LOST
    assert findings.stream.error == "unplugged"


async def test_a_phone_that_returns_with_the_same_app_goes_on_after_a_gap(bench: Bench) -> None:
    link = bench.link
    app = ScriptedApp(link, LINES, then="silence")
    second = ScriptedSession(link.script)

    async def unplug() -> None:
        await app.started.wait()
        await anyio.sleep(0.05)
        link.session.tell(SessionLost("unplugged"))
        link.session = second
        second.running.add(PID)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(unplug)
        findings = await bench.run()
    assert findings.cause_hint() is None
    assert findings.lost_at_s is None
    assert app.resumed_from == [3]
    assert bench.stream() == b"".join(LINES) + record(4, "bye")
    assert [gap["reason"] for gap in bench.events("gap_began")] == ["unplugged"]
    assert len(bench.events("gap_ended")) == 1
    assert [(window.number, window.pid) for window in findings.windows] == [(1, PID)]
    assert link.script.calls.count("launch") == 1


async def test_another_launch_at_the_port_is_not_ours(bench: Bench) -> None:
    bench.order = replace(bench.order, return_grace_s=0.05)
    app = ScriptedApp(bench.link, LINES, then="silence")

    async def reboot() -> None:
        await app.started.wait()
        await anyio.sleep(0.05)
        app.launch = "another"
        bench.link.session.tell(SessionLost("rebooted"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reboot)
        findings = await bench.run()
    assert findings.cause_hint() is Cause.DEVICE_LOST
    assert app.resumed_from == []


@pytest.mark.parametrize(("boot", "rebooted"), [("boot-2", True), ("boot-1", False), (None, None)])
async def test_a_lost_phone_that_answers_again_is_asked_whether_it_had_restarted(
    bench: Bench, boot: str | None, rebooted: bool | None
) -> None:
    bench.order = replace(bench.order, return_grace_s=0.05)
    app = ScriptedApp(bench.link, LINES, then="silence")

    async def lose() -> None:
        await app.started.wait()
        app.launch = "another"
        bench.link.session.boot = boot
        bench.link.session.tell(SessionLost("gone"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lose)
        findings = await bench.run()
    assert findings.cause_hint() is Cause.DEVICE_LOST
    assert findings.rebooted is rebooted
    assert findings.evidence_document(1, MergeCounts()).rebooted is rebooted


@pytest.mark.parametrize(
    "step", ["facts", "list_reports", "install", "push", "developer", "launch", "observe"]
)
async def test_a_failing_step_ends_the_session_and_is_told(step: str, bench: Bench) -> None:
    ScriptedApp(bench.link, LINES)
    failure = DeviceError("bench-01", "afc", step, "broken", cause=Cause.INSTALL_FAILED)
    bench.link.script.failures[step] = failure
    findings = await bench.run()
    assert findings.error is failure
    assert findings.cause_hint() is Cause.INSTALL_FAILED
    assert bench.events("session_ended") == [{"cause": "install_failed"}]
    opened = "developer" in bench.link.script.calls and step != "developer"
    assert ("aclose" in bench.link.script.calls) is opened


async def test_reports_that_do_not_come_in_time_are_asked_for_once_more(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ScriptedApp(bench.link, LINES)
    original, asked = bench.link.pull_reports, []

    async def mute_at_first(into: Path, *, known: set[str], deadline: Deadline) -> object:
        asked.append(deadline.limit_s)
        if len(asked) == 1:
            raise DeadlineExceededError("bench-01", "afc", "collect", 60.0)
        return await original(into, known=known, deadline=deadline)

    monkeypatch.setattr(bench.link, "pull_reports", mute_at_first)
    await bench.run()
    assert asked == [60.0, 60.0]
    assert bench.events("reports_missing") == []


async def test_an_unfit_phone_is_refused_before_anything_is_installed(bench: Bench) -> None:
    bench.link.health = replace(HEALTHY, developer_mode=False)
    findings = await bench.run()
    assert findings.cause_hint() is Cause.NOT_READY
    assert "install" not in bench.link.script.calls


async def test_a_defect_of_ours_costs_one_phone_and_is_named(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        await anyio.lowlevel.checkpoint()
        raise RuntimeError("boom")

    monkeypatch.setattr(bench.link, "install", broken)
    findings = await bench.run()
    assert "internal error: RuntimeError: boom" in str(findings.error)


@pytest.mark.parametrize("step", ["facts", "install", "developer", "launch"])
async def test_a_stop_before_the_app_runs_ends_at_once(step: str, bench: Bench) -> None:
    bench.link.script.gates[step] = anyio.Event()  # never set: only a stop gets past it
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.run)
        while step not in bench.link.script.calls:  # noqa: ASYNC110 - a script has no event
            await anyio.sleep(0.01)
        bench.stop.set()
    assert bench.events("stopped_early") == [{}]


async def test_a_stop_before_the_start_touches_nothing(bench: Bench) -> None:
    bench.stop.set()
    await bench.run()
    assert "install" not in bench.link.script.calls


async def test_a_stop_in_mid_run_asks_the_app_and_collects(bench: Bench) -> None:
    app = ScriptedApp(bench.link, LINES, then="silence")
    bench.link.files[JOURNAL] = b"journal"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.run)
        await app.started.wait()
        bench.stop.set()
    assert app.commands == ["hello", "start", "stop"]
    assert bench.stream() == b"".join(LINES) + record(4, "bye")
    assert "pull" in bench.link.script.calls
