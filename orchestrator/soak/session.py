"""The soak of one phone, from its first fact to its evidence: the one catch boundary per phone."""

from __future__ import annotations

import secrets
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar, TypeVarTuple, Unpack

import anyio

from orchestrator.device.pushing import Payload, push_once
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError
from orchestrator.domain.outcome import Cause
from orchestrator.runlog.documents import LaunchWindow
from orchestrator.runlog.files import LineWriter, write_document
from orchestrator.soak.collect import ReportCollector, pull_journal, report_wait_s
from orchestrator.soak.findings import SessionFindings
from orchestrator.soak.gate import health_document, refusal
from orchestrator.soak.streaming import AppStream, StartCommand
from orchestrator.soak.watch import Ending, hang_limit_s

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from pathlib import Path

    from orchestrator.device.link import DeveloperSession, PhoneLink
    from orchestrator.harness.models import ModelPackage
    from orchestrator.runlog.documents import PlanDocument, PlannedPhone
    from orchestrator.runlog.layout import AttemptPaths
    from orchestrator.soak.run_directory import RunRecorder

APP_PORT: Final = 28450
FACTS_LIMIT_S: Final = 20.0
INSTALL_LIMIT_S: Final = 300.0
DEVELOPER_LIMIT_S: Final = 60.0
CALL_LIMIT_S: Final = 20.0
OBSERVE_MS: Final = 500
HURRIED_LIMIT_S: Final = 4.0  # of a collecting step after Ctrl-C, which must end within 20 s
_OVERRUN_FACTOR: Final = 4.0
_OVERRUN_GRACE_S: Final = 120.0

A = TypeVarTuple("A")
R = TypeVar("R")


class SessionStoppedError(Exception):
    """A stop was requested before the app ran."""


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


@dataclass(slots=True)
class PhoneSession:
    """One attempt on one phone. The first failure sticks and becomes the evidence's error."""

    order: SessionOrder
    link: PhoneLink
    paths: AttemptPaths
    recorder: RunRecorder
    stop: anyio.Event
    attempt: int = 1
    findings: SessionFindings = field(default_factory=SessionFindings)

    async def run(self) -> SessionFindings:
        """Soak the phone and return what was found; lab errors are findings, not exceptions."""
        collector = ReportCollector(self.link, self.paths.reports)
        try:
            await self._until_stop(self._prepare, collector)
            await self._soak()
        except DeviceError as error:
            self._fail(error)
        except SessionStoppedError:
            self._event("stopped_early")
        except Exception as error:  # noqa: BLE001 - the one boundary: a defect here costs one phone
            facts = f"internal error: {type(error).__name__}: {error}"
            alias = self.order.phone.alias
            self._fail(DeviceError(alias, "host", "session", facts, cause=Cause.NOT_READY))
        with anyio.CancelScope(shield=True):
            await self._collect(collector)
        hint = self.findings.cause_hint()
        self._event("session_ended", cause=hint.value if hint else None)
        return self.findings

    async def _prepare(self, collector: ReportCollector) -> None:
        self._phase("facts")
        facts = await self.link.facts(deadline=Deadline.after(FACTS_LIMIT_S))
        self.findings.facts = facts
        problem = refusal(facts, self.order.min_battery_percent)
        write_document(self.paths.health, health_document(facts, problem, time.time()))
        if problem is not None:
            raise DeviceError(
                self.order.phone.alias,
                "gate",
                "prepare",
                problem.facts,
                cause=problem.cause,
                remedy=problem.remedy,
            )
        await collector.remember_present()
        self._phase("install")
        bundle_id = self.order.plan.app.bundle_id
        await self.link.install(self.order.ipa, bundle_id, deadline=Deadline.after(INSTALL_LIMIT_S))
        self._event("installed", bundle_id=bundle_id)
        for package in self.order.packages:
            await self._push(package)

    async def _push(self, package: ModelPackage) -> None:
        payload = Payload(package.folder, package.digest, {"model.json": package.content})
        bundle_id = self.order.plan.app.bundle_id
        deadline = Deadline.after(INSTALL_LIMIT_S)
        sent = await push_once(self.link, bundle_id, payload, deadline=deadline)
        self._event("model", digest=package.digest, sent=sent)

    async def _soak(self) -> None:
        async with self._developer_session() as session:
            token = secrets.token_hex(16)
            started_s = time.time()
            pid = await self._until_stop(self._launch, session, token)
            self._phase("soak")
            await self._follow(session, pid, token, started_s)

    async def _launch(self, session: DeveloperSession, token: str) -> int:
        self.findings.physical_memory_bytes = await session.physical_memory_bytes(
            deadline=Deadline.after(CALL_LIMIT_S)
        )
        self._phase("launch")
        pid = await session.launch(
            self.order.plan.app.bundle_id,
            self._environment(token),
            deadline=Deadline.after(DEVELOPER_LIMIT_S),
        )
        self._event("launched", pid=pid)
        await session.observe(pid, OBSERVE_MS, deadline=Deadline.after(CALL_LIMIT_S))
        return pid

    @asynccontextmanager
    async def _developer_session(self) -> AsyncIterator[DeveloperSession]:
        self._phase("developer")
        session = await self._until_stop(self._open_developer)
        self._event("developer_session", road="tunneld" if session.by_tunneld else "own tunnel")
        try:
            yield session
        finally:
            with anyio.CancelScope(shield=True):
                await session.aclose()

    async def _open_developer(self) -> DeveloperSession:
        return await self.link.developer(deadline=Deadline.after(DEVELOPER_LIMIT_S))

    async def _until_stop(self, act: Callable[[Unpack[A]], Awaitable[R]], *arguments: *A) -> R:
        """Return what `act` returns, unless a stop is requested first."""
        results: list[R] = []
        failures: list[Exception] = []
        async with anyio.create_task_group() as tasks:

            async def give_up() -> None:
                await self.stop.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(give_up)
            try:
                results.append(await act(*arguments))
            except Exception as error:  # noqa: BLE001 - raised again below; a group would wrap it
                failures.append(error)
            tasks.cancel_scope.cancel()
        if failures:
            raise failures[0]
        if not results:
            raise SessionStoppedError
        return results[0]

    async def _follow(
        self, session: DeveloperSession, pid: int, token: str, started_s: float
    ) -> None:
        with (
            LineWriter(self.paths.stream(1)) as stream,
            LineWriter(self.paths.console) as console,
        ):
            followed = AppStream(
                link=self.link,
                session=session,
                pid=pid,
                port=APP_PORT,
                token=token,
                start=self._start_command(),
                stream=stream,
                console=console,
                stop=self.stop,
                run_limit_s=self.order.duration_s * _OVERRUN_FACTOR + _OVERRUN_GRACE_S,
                hang_limit_s=hang_limit_s(self.order.plan.thresholds),
            )
            self.findings.stream = result = await followed.follow()
        for end in result.exits:
            self._event("app_exited", pid=end.pid, exit_code=end.exit_code, signal=end.signal)
        if not result.exits and result.ending is not Ending.LOST:
            alive = await session.is_running(pid, deadline=Deadline.after(CALL_LIMIT_S))
            self.findings.alive_at_end = alive
            self._event("app_alive", pid=pid, alive=alive)
        self.findings.windows.append(
            LaunchWindow(
                number=1,
                pid=pid,
                launch=result.launch,
                started_s=started_s,
                ended_s=result.exits[0].at_s if result.exits else time.time(),
            )
        )

    async def _collect(self, collector: ReportCollector) -> None:
        self._phase("collect")
        hurried = self.stop.is_set()
        limit_s = HURRIED_LIMIT_S if hurried else INSTALL_LIMIT_S
        launch = self.findings.stream.launch
        if launch is not None:
            problem = await pull_journal(
                self.link,
                self.order.plan.app.bundle_id,
                launch,
                self.paths.journal(1),
                limit_s=limit_s,
            )
            self.findings.journal_pulled = problem is None
            if problem is not None:
                self._event("journal_missing", reason=problem)
        if self.findings.facts is None:
            return
        await self._measure_clock(limit_s)
        await self._collect_reports(collector, limit_s)

    async def _measure_clock(self, limit_s: float) -> None:
        """Read the phone's clock again: it may have been set since the session began."""
        try:
            facts = await self.link.facts(deadline=Deadline.after(min(FACTS_LIMIT_S, limit_s)))
        except DeviceError as error:
            self._event("clock_unmeasured", reason=str(error))
        else:
            self.findings.clock_at_end = facts.clock

    async def _collect_reports(self, collector: ReportCollector, limit_s: float) -> None:
        findings = self.findings
        try:
            if findings.died and not self.stop.is_set():
                await collector.pull_until_explained(
                    self.order.plan.app.name,
                    findings.windows,
                    findings.clock_offsets_s,
                    wait_s=report_wait_s(findings.facts, self.order.report_wait_s),
                )
            else:
                await collector.pull_new(limit_s=limit_s)
        except DeviceError as error:
            self._event("reports_missing", reason=str(error))
        findings.reports, findings.ignored_reports = collector.files, collector.ignored
        for report in collector.files:
            self._event("report_pulled", path=report.device_path)
        if collector.ignored:
            self._event("reports_ignored", count=collector.ignored)

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
        self._event("error", message=str(error), cause=error.cause.value)

    def _phase(self, name: str) -> None:
        self._event("phase", name=name)

    def _event(self, kind: str, **facts: str | float | bool | None) -> None:
        self.recorder.event(kind, udid=self.order.phone.udid, attempt=self.attempt, **facts)
