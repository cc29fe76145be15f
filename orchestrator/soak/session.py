"""The soak of one phone, from its first fact to its evidence: the one catch boundary per phone."""

from __future__ import annotations

import secrets
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.device.pushing import Payload, push_once
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError
from orchestrator.domain.outcome import Cause
from orchestrator.runlog.documents import LaunchWindow
from orchestrator.runlog.files import LineWriter
from orchestrator.runlog.merge import ends_with_bye, newest_seq
from orchestrator.soak.collect import ReportCollector, pull_journal
from orchestrator.soak.findings import SessionFindings
from orchestrator.soak.gate import GateLimits
from orchestrator.soak.gatekeeper import Gatekeeper
from orchestrator.soak.gathering import LIMIT_S, Gathering
from orchestrator.soak.session_state import RememberedError, SessionJournal, Stage
from orchestrator.soak.stopping import SessionStoppedError, until_stop
from orchestrator.soak.streaming import AppStream, StartCommand
from orchestrator.soak.watch import Ending, hang_limit_s

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from orchestrator.device.facts import PhoneFacts
    from orchestrator.device.link import DeveloperSession, PhoneLink
    from orchestrator.harness.models import ModelPackage
    from orchestrator.runlog.documents import PlanDocument, PlannedPhone
    from orchestrator.runlog.layout import AttemptPaths
    from orchestrator.soak.run_directory import RunRecorder

APP_PORT: Final = 28450
INSTALL_LIMIT_S: Final = 300.0
DEVELOPER_LIMIT_S: Final = 60.0
CALL_LIMIT_S: Final = 20.0
OBSERVE_MS: Final = 500
KEEPER_END_LIMIT_S: Final = 20.0  # of a keeper whose orchestrator died before the launch
_OVERRUN_FACTOR: Final = 4.0
_OVERRUN_GRACE_S: Final = 120.0
_RETRY_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class SessionOrder:
    """What is done on one phone."""

    plan: PlanDocument
    phone: PlannedPhone
    ipa: Path
    packages: Sequence[ModelPackage]
    duration_s: float
    defect: str | None
    min_battery_percent: float
    report_wait_s: float
    gate: GateLimits | None = None  # None: the battery alone
    lab_retries: int = 0


@dataclass(slots=True)
class PhoneSession:
    """One attempt on one phone. The first failure sticks and becomes the evidence's error."""

    order: SessionOrder
    link: PhoneLink
    paths: AttemptPaths
    recorder: RunRecorder
    stop: anyio.Event
    journal: SessionJournal = field(default_factory=SessionJournal)
    findings: SessionFindings = field(default_factory=SessionFindings)

    async def run(self) -> SessionFindings:
        """Soak the phone and return what was found; lab errors are findings, not exceptions."""
        collector = ReportCollector(self.link, self.paths.reports)
        try:
            await self._reach_the_end(collector)
        except DeviceError as error:
            self._fail(error)
        except SessionStoppedError:
            self._event("stopped_early")
        except Exception as error:  # noqa: BLE001 - the one boundary: a defect here costs one phone
            facts = f"internal error: {type(error).__name__}: {error}"
            alias = self.order.phone.alias
            self._fail(DeviceError(alias, "host", "session", facts, cause=Cause.NOT_READY))
        if self.findings.cause_hint() is Cause.DEVICE_LOST:
            self.findings.lost_at_s = time.time()
        self.journal.save(Stage.COLLECTING)
        with anyio.CancelScope(shield=True):
            await self._collect(collector)
        hint = self.findings.cause_hint()
        self._event("session_ended", cause=hint.value if hint else None)
        return self.findings

    async def _reach_the_end(self, collector: ReportCollector) -> None:
        """Bring the app to its end, from wherever a dead orchestrator left it."""
        if self.journal.resumed:
            self._recall(collector)
        if self.journal.state.stage is Stage.RUNNING and await self._rejoin():
            return
        if self.journal.resumed:
            await self._vacate()
        if self.journal.state.stage is Stage.COLLECTING:
            return
        await until_stop(self.stop, self._prepare, collector)
        await self._soak()

    def _recall(self, collector: ReportCollector) -> None:
        """Make the findings those that the dead orchestrator had."""
        state, findings = self.journal.state, self.findings
        findings.facts, findings.physical_memory_bytes = state.facts, state.physical_memory_bytes
        findings.stream, findings.windows = state.stream, state.windows
        findings.alive_at_end = state.alive_at_end
        findings.error = state.error.error() if state.error else None
        collector.remember(state.known_reports)

    async def _rejoin(self) -> bool:
        """Follow the app that was left running; False where none was, nor had been."""
        session = await self._adopted()
        if session is None:
            return await self._find_without_keeper()
        pid = self.journal.state.pid or session.app_pid
        async with _closing(session):
            if pid is None:
                return False  # the launch never came to be
            self._event("adopted", pid=pid)
            await self._follow_found(session, pid)
        return True

    async def _adopted(self) -> DeveloperSession | None:
        return await self.link.adopt(deadline=Deadline.after(DEVELOPER_LIMIT_S))

    async def _find_without_keeper(self) -> bool:
        """Look for an app whose keeper is gone: it may live on, and its journal in any case."""
        pid = self.journal.state.pid
        self._event("keeper_gone", pid=pid)
        if pid is None:
            return False
        async with self._developer_session() as session:
            if await session.is_running(pid, deadline=Deadline.after(CALL_LIMIT_S)):
                await self._follow_found(session, pid)
                return True
        self.findings.windows.append(self._window(pid, time.time()))
        if await self._said_goodbye():
            return True
        raise DeviceError(
            self.order.phone.alias,
            "host",
            "resume",
            f"process {pid} ended while nobody watched: its keeper is gone",
            remedy="Resume within the keeper's lease of 30 minutes",
        )

    async def _said_goodbye(self) -> bool:
        """Ask the journal whether the app ended as it should."""
        launch = self.findings.stream.launch
        target = self.paths.journal(1)
        if launch is None or await pull_journal(
            self.link, self.order.plan.app.bundle_id, launch, target
        ):
            return False
        if not ends_with_bye(target):
            return False
        self.findings.stream.ending = Ending.COMPLETED
        return True

    async def _follow_found(self, session: DeveloperSession, pid: int) -> None:
        with suppress(DeviceError):  # of a process that is gone there is nothing to observe
            await session.observe(pid, OBSERVE_MS, deadline=Deadline.after(CALL_LIMIT_S))
        await self._follow(session, pid)

    async def _vacate(self) -> None:
        """Wait for the end of a keeper that has no app of ours, and of its session."""
        deadline = Deadline.after(KEEPER_END_LIMIT_S)
        while not deadline.passed:
            try:
                session = await self.link.adopt(deadline=deadline)
            except DeviceError:  # it is ending by itself
                await anyio.sleep(_RETRY_S)
                continue
            if session is None:
                return
            await session.aclose()

    async def _prepare(self, collector: ReportCollector) -> None:
        self._phase("facts")
        self.findings.facts = self.journal.state.facts = await self._admit()
        await collector.remember_present()
        self.journal.state.known_reports = collector.known
        self._phase("install")
        bundle_id = self.order.plan.app.bundle_id
        await self.link.install(self.order.ipa, bundle_id, deadline=Deadline.after(INSTALL_LIMIT_S))
        self._event("installed", bundle_id=bundle_id)
        for package in self.order.packages:
            await self._push(package)

    async def _admit(self) -> PhoneFacts:
        gate = self.order.gate or GateLimits(self.order.min_battery_percent)
        return await Gatekeeper(self.link, gate, self.paths.health, self._event).admit()

    async def _push(self, package: ModelPackage) -> None:
        payload = Payload(package.folder, package.digest, {"model.json": package.content})
        bundle_id = self.order.plan.app.bundle_id
        deadline = Deadline.after(INSTALL_LIMIT_S)
        sent = await push_once(self.link, bundle_id, payload, deadline=deadline)
        self._event("model", digest=package.digest, sent=sent)

    async def _soak(self) -> None:
        async with self._developer_session() as session:
            pid = await until_stop(self.stop, self._launch, session)
            self._phase("soak")
            await self._follow(session, pid)

    async def _launch(self, session: DeveloperSession) -> int:
        state = self.journal.state
        await self._admit()  # again: installing took its time
        memory_bytes = await session.physical_memory_bytes(deadline=Deadline.after(CALL_LIMIT_S))
        self.findings.physical_memory_bytes = state.physical_memory_bytes = memory_bytes
        self._phase("launch")
        state.token, state.started_s, state.pid = secrets.token_hex(16), time.time(), None
        self.journal.save(Stage.RUNNING)
        state.pid = await session.launch(
            self.order.plan.app.bundle_id,
            self._environment(state.token),
            deadline=Deadline.after(DEVELOPER_LIMIT_S),
        )
        self.journal.save()
        self._event("launched", pid=state.pid)
        await session.observe(state.pid, OBSERVE_MS, deadline=Deadline.after(CALL_LIMIT_S))
        return state.pid

    @asynccontextmanager
    async def _developer_session(self) -> AsyncIterator[DeveloperSession]:
        self._phase("developer")
        session = await until_stop(self.stop, self._open_developer)
        self._event("developer_session", road="tunneld" if session.by_tunneld else "own tunnel")
        async with _closing(session):
            yield session

    async def _open_developer(self) -> DeveloperSession:
        return await self.link.developer(deadline=Deadline.after(DEVELOPER_LIMIT_S))

    async def _follow(self, session: DeveloperSession, pid: int) -> None:
        state = self.journal.state
        self.findings.stream = state.stream
        with (
            LineWriter(self.paths.stream(1)) as stream,
            LineWriter(self.paths.console) as console,
        ):
            result = await AppStream(
                link=self.link,
                session=session,
                pid=pid,
                port=APP_PORT,
                token=state.token,
                start=self._start_command(),
                stream=stream,
                console=console,
                stop=self.stop,
                run_limit_s=_run_limit_s(self.order.duration_s),
                hang_limit_s=hang_limit_s(self.order.plan.thresholds),
                result=state.stream,
                last_seq=newest_seq(stream.path) if self.journal.resumed else 0,
                remember=self.journal.save,
            ).follow()
        for end in result.exits:
            self._event("app_exited", pid=end.pid, exit_code=end.exit_code, signal=end.signal)
        if not result.exits and result.ending is not Ending.LOST:
            alive = await session.is_running(pid, deadline=Deadline.after(CALL_LIMIT_S))
            self.findings.alive_at_end = alive
            self._event("app_alive", pid=pid, alive=alive)
        self.findings.windows.append(
            self._window(pid, result.exits[0].at_s if result.exits else time.time())
        )
        self._keep_findings()

    def _window(self, pid: int, ended_s: float) -> LaunchWindow:
        state = self.journal.state
        return LaunchWindow(
            number=1,
            pid=pid,
            launch=state.stream.launch,
            started_s=state.started_s,
            ended_s=ended_s,
        )

    def _keep_findings(self) -> None:
        """Remember the end of the app before the session, which knows it, is closed."""
        state = self.journal.state
        state.windows, state.alive_at_end = self.findings.windows, self.findings.alive_at_end
        self.journal.save(Stage.COLLECTING)

    async def _collect(self, collector: ReportCollector) -> None:
        self._phase("collect")
        gathering = Gathering(
            link=self.link,
            app=self.order.plan.app,
            paths=self.paths,
            collector=collector,
            findings=self.findings,
            report_wait_s=self.order.report_wait_s,
            hurried=self.stop.is_set(),
            remark=self._event,
        )
        await gathering.run()

    def _start_command(self) -> StartCommand:
        return StartCommand(
            run_id=self.order.plan.run_id,
            nonce=self.order.phone.nonce,
            scenario=self.order.plan.scenario,
            packages=[package.listed() for package in self.order.packages],
        )

    def _environment(self, token: str) -> dict[str, str]:
        environment = {"FLEET_TOKEN": token, "FLEET_PORT": str(APP_PORT)}
        if self.order.defect is not None:
            environment["FLEET_DEFECT"] = self.order.defect
        return environment

    def _fail(self, error: DeviceError) -> None:
        if self.findings.error is None:
            self.findings.error = error
            self.journal.state.error = RememberedError.of(error)
        self._event("error", message=str(error), cause=error.cause.value)

    def _phase(self, name: str) -> None:
        self._event("phase", name=name)

    def _event(self, kind: str, **facts: str | float | bool | None) -> None:
        self.recorder.event(
            kind, udid=self.order.phone.udid, attempt=self.journal.state.attempt, **facts
        )


def longest_s(duration_s: float) -> float:
    """Return when a run of so much inference time is over by its own limits."""
    return _run_limit_s(duration_s) + 2 * INSTALL_LIMIT_S + LIMIT_S


def _run_limit_s(duration_s: float) -> float:
    return duration_s * _OVERRUN_FACTOR + _OVERRUN_GRACE_S


@asynccontextmanager
async def _closing(session: DeveloperSession) -> AsyncIterator[None]:
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            await session.aclose()
