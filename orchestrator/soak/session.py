"""The soak of one phone, from its first fact to its evidence: the one catch boundary per phone."""

from __future__ import annotations

import secrets
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.device.pushing import Payload, prune_models, push_once
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError, told
from orchestrator.domain.outcome import Cause
from orchestrator.soak.collect import ReportCollector
from orchestrator.soak.findings import SessionFindings
from orchestrator.soak.following import (
    APP_PORT,
    CALL_LIMIT_S,
    OBSERVE_MS,
    AppFollower,
    run_limit_s,
)
from orchestrator.soak.gate import GateLimits
from orchestrator.soak.gatekeeper import Gatekeeper
from orchestrator.soak.gathering import LIMIT_S, Gathering
from orchestrator.soak.ladder import RecoveryPolicy
from orchestrator.soak.rejoining import DEVELOPER_LIMIT_S, Rejoiner
from orchestrator.soak.session_state import RememberedError, SessionJournal, Stage
from orchestrator.soak.stagger import Stagger
from orchestrator.soak.stopping import SessionStoppedError, until_stop
from orchestrator.soak.transfer_progress import TransferProgress

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from orchestrator.device.facts import PhoneFacts
    from orchestrator.device.link import DeveloperSession, PhoneLink
    from orchestrator.harness.models import ModelPackage
    from orchestrator.runlog.documents import PlanDocument, PlannedPhone
    from orchestrator.runlog.layout import AttemptPaths
    from orchestrator.soak.run_directory import RunRecorder

INSTALL_LIMIT_S: Final = 300.0
MODEL_CACHE_BYTES: Final = 8 * 1024**3


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
    transfers: anyio.CapacityLimiter | None = None  # shared by a run's phones
    model_cache_bytes: int = MODEL_CACHE_BYTES  # what models on the phone may take together
    return_grace_s: float = 30.0  # from the loss of a phone to its return
    recovery: RecoveryPolicy = field(default_factory=RecoveryPolicy)
    stagger: Stagger = field(default_factory=Stagger)  # shared by a run's phones


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
            known = told(error)
            facts = str(known) if known else f"internal error: {type(error).__name__}: {error}"
            alias = self.order.phone.alias
            self._fail(DeviceError(alias, "host", "session", facts, cause=Cause.NOT_READY))
        if self.findings.cause_hint() is Cause.DEVICE_LOST and self.findings.lost_at_s is None:
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
        if self.journal.state.stage is Stage.RUNNING and await self._rejoiner().rejoin():
            if self.journal.state.pid is not None:
                await self._rejoiner().follow_through_gaps(self.journal.state.pid)
            await self._soak_on()
            return
        if self.journal.resumed:
            await self._rejoiner().vacate()
        if self.journal.state.stage is Stage.COLLECTING:
            return
        if self.journal.state.stage is not Stage.RELAUNCHING:
            await until_stop(self.stop, self._prepare, collector)
            await self._soak()
        await self._soak_on()

    def _recall(self, collector: ReportCollector) -> None:
        """Make the findings those that the dead orchestrator had."""
        state, findings = self.journal.state, self.findings
        findings.facts, findings.physical_memory_bytes = state.facts, state.physical_memory_bytes
        findings.boot_session = state.boot_session
        findings.stream, findings.windows = state.stream, state.windows
        findings.alive_at_end = state.alive_at_end
        findings.error = state.error.error() if state.error else None
        collector.remember(state.known_reports)

    async def _prepare(self, collector: ReportCollector) -> None:
        self._phase("facts")
        self.findings.facts = self.journal.state.facts = await self._admit()
        await collector.remember_present()
        self.journal.state.known_reports = collector.known
        async with self.order.transfers or anyio.CapacityLimiter(1):
            await self.order.stagger.turn()
            await self._transfer()

    async def _transfer(self) -> None:
        """Install the app and push the models: what fills hub and disk if all do it at once."""
        self._phase("install")
        bundle_id = self.order.plan.app.bundle_id
        await self.link.install(
            self.order.ipa,
            bundle_id,
            deadline=Deadline.after(INSTALL_LIMIT_S),
            on_progress=TransferProgress("install", self._event).on_install,
        )
        self._event("installed", bundle_id=bundle_id)
        self._phase("push")
        await self._prune()  # first: it makes the room that a push needs
        for package in self.order.packages:
            await self._push(package)

    async def _admit(self) -> PhoneFacts:
        gate = self.order.gate or GateLimits(self.order.min_battery_percent)
        return await Gatekeeper(self.link, gate, self.paths.health, self._event).admit()

    async def _push(self, package: ModelPackage) -> None:
        payload = Payload(package.folder, package.digest, package.files)
        bundle_id = self.order.plan.app.bundle_id
        deadline = Deadline.after(INSTALL_LIMIT_S)
        progress = TransferProgress("push", self._event)
        pushed = await push_once(
            self.link, bundle_id, payload, deadline=deadline, on_percent=progress.on_percent
        )
        self._event(
            "model",
            digest=package.digest,
            sent=bool(pushed),
            sent_bytes=pushed.sent_bytes,
            resumed=len(pushed.resumed),
        )

    async def _prune(self) -> None:
        """Delete models of earlier runs, the oldest first, where they take too much."""
        gone = await prune_models(
            self.link,
            self.order.plan.app.bundle_id,
            [package.digest for package in self.order.packages],
            self.order.model_cache_bytes,
            deadline=Deadline.after(INSTALL_LIMIT_S),
        )
        for digest in gone:
            self._event("model_pruned", digest=digest)

    async def _soak_on(self) -> None:
        """Launch the app again as long as a part of the soak is left."""
        while self.journal.state.stage is Stage.RELAUNCHING:
            await self._soak()

    async def _soak(self) -> None:
        async with self._developer_session() as session:
            pid = await until_stop(self.stop, self._launch, session)
            self._phase("soak")
            await self._follower().follow(session, pid)
        await self._rejoiner().follow_through_gaps(pid)

    def _follower(self) -> AppFollower:
        return AppFollower(
            order=self.order,
            link=self.link,
            paths=self.paths,
            journal=self.journal,
            findings=self.findings,
            stop=self.stop,
            remark=self._event,
        )

    def _rejoiner(self) -> Rejoiner:
        return Rejoiner(self._follower())

    async def _launch(self, session: DeveloperSession) -> int:
        state = self.journal.state
        if state.launch == 1:  # the heat of the soak itself is no reason to wait with the next part
            await self._admit()  # again: installing took its time
        memory_bytes = await session.physical_memory_bytes(deadline=Deadline.after(CALL_LIMIT_S))
        self.findings.physical_memory_bytes = state.physical_memory_bytes = memory_bytes
        boot = await session.boot_session(deadline=Deadline.after(CALL_LIMIT_S))
        self.findings.boot_session = state.boot_session = boot
        self._phase("launch")
        state.token, state.started_s, state.pid = secrets.token_hex(16), time.time(), None
        self.journal.save(Stage.RUNNING)
        state.pid = await session.launch(
            self.order.plan.app.bundle_id,
            self._environment(state.token),
            deadline=Deadline.after(DEVELOPER_LIMIT_S),
        )
        self.journal.save()
        self._event("launched", pid=state.pid, launch=state.launch)
        await session.observe(state.pid, OBSERVE_MS, deadline=Deadline.after(CALL_LIMIT_S))
        return state.pid

    @asynccontextmanager
    async def _developer_session(self) -> AsyncIterator[DeveloperSession]:
        self._phase("developer")
        session = await until_stop(self.stop, self._open_developer)
        self._event("developer_session", road="tunneld" if session.by_tunneld else "own tunnel")
        try:
            yield session
        finally:
            with anyio.CancelScope(shield=True):
                await session.aclose()

    async def _open_developer(self) -> DeveloperSession:
        return await self.link.developer(deadline=Deadline.after(DEVELOPER_LIMIT_S))

    async def _collect(self, collector: ReportCollector) -> None:
        self._phase("collect")
        gathering = Gathering(
            link=self.link,
            app=self.order.plan.app,
            paths=self.paths,
            collector=collector,
            findings=self.findings,
            launch=self.journal.state.launch,
            report_wait_s=self.order.report_wait_s,
            hurried=self.stop.is_set(),
            remark=self._event,
        )
        await gathering.run()

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
    return run_limit_s(duration_s) + 2 * INSTALL_LIMIT_S + LIMIT_S
