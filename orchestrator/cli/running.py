"""Runs the sessions of a plan: the same for a run that begins and one that is resumed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from orchestrator.cli.live import shown
from orchestrator.device.keeper.broker import KeeperBroker
from orchestrator.device.keeper.start import KeeperStarter
from orchestrator.device.pmd3.link import Pmd3Link
from orchestrator.domain.phone import Phone
from orchestrator.harness.models import witness_packages
from orchestrator.harness.reference import reference_package
from orchestrator.soak.campaign import Campaign
from orchestrator.soak.gate import GateLimits
from orchestrator.soak.ladder import RecoveryPolicy
from orchestrator.soak.ledger import Ledger, QuarantinePolicy
from orchestrator.soak.lock_keys import real_address
from orchestrator.soak.session import SessionOrder
from orchestrator.soak.stagger import Stagger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from signal import Signals

    from orchestrator.config.model import FleetConfig
    from orchestrator.device.discovery import UsbmuxSource
    from orchestrator.harness.models import ModelPackage
    from orchestrator.runlog.documents import PlanDocument, PlannedPhone
    from orchestrator.soak.run_directory import RunRecorder
    from orchestrator.soak.session_state import SessionJournal


@dataclass(frozen=True, slots=True)
class Execution:
    """A plan and what it is carried out with."""

    config: FleetConfig
    plan: PlanDocument
    duration_s: float
    sources: Sequence[UsbmuxSource]
    ipa: Path
    own_phones: bool  # started by this process, which they do not outlive
    journal_of: Callable[[PlannedPhone], SessionJournal]
    signals: AsyncIterator[Signals]  # caught since before the run had a directory
    kept: Sequence[Path] = ()  # files beside the run that belong to its evidence
    stop: anyio.Event = field(default_factory=anyio.Event)
    until_s: float | None = None  # wall clock: when the window closes
    stopped_by: str | None = None  # who wanted the end before this began

    async def run(self, recorder: RunRecorder) -> None:
        """Soak every phone of the plan, and end the run."""
        async with KeeperStarter() as starter:
            brokers = {source.name: self._broker(source.name, starter) for source in self.sources}
            addresses = {source.name: real_address(source.address) for source in self.sources}

            def link_to(phone: PlannedPhone) -> Pmd3Link:
                return Pmd3Link(_phone(phone), addresses[phone.source], brokers[phone.source])

            campaign = Campaign(
                self._orders(),
                link_to,
                recorder,
                journal_of=self.journal_of,
                kept=self.kept,
                stop=self.stop,
                interrupted_by=self.stopped_by,
                signals=self.signals,
                until_s=self.until_s,
                # Phones that a run starts itself are new every time: nothing is held against them.
                ledger=None if self.own_phones else Ledger(),
                quarantine=QuarantinePolicy(
                    self.config.quarantine.after_lab_errors, self.config.quarantine.for_hours
                ),
            )
            with shown(recorder.paths):
                await campaign.run()

    def _broker(self, source: str, starter: KeeperStarter) -> KeeperBroker:
        tunneld = {entry.name: entry.tunneld for entry in self.config.sources}.get(source)
        # Phones that a run started itself die with it; others keep app and keeper for the lease.
        return KeeperBroker(starter, die_with_parent=self.own_phones, tunneld=tunneld)

    def _orders(self) -> list[SessionOrder]:
        transfers = anyio.CapacityLimiter(self.config.schedule.parallel_transfers)
        stagger, recovery = Stagger(self.config.schedule.stagger_s), recovery_of(self.config)
        return [
            SessionOrder(
                plan=self.plan,
                phone=phone,
                ipa=self.ipa,
                packages=packages_of(self.config),
                duration_s=self.duration_s,
                defect=self.config.harness.defect,
                min_battery_percent=self.config.gate.min_battery_percent,
                report_wait_s=self.config.evidence.report_wait_s,
                gate=gate_limits(self.config),
                lab_retries=self.config.retry.lab,
                transfers=transfers,
                model_cache_bytes=int(self.config.model.cache_gib * 1024**3),
                recovery=recovery,
                stagger=stagger,
            )
            for phone in self.plan.phones
        ]


def recovery_of(config: FleetConfig) -> RecoveryPolicy:
    """Return which rungs of the recovery ladder the lab allows."""
    block = config.recovery
    return RecoveryPolicy(block.hub_power_command, block.reboot, frozenset(block.never_reboot))


def gate_limits(config: FleetConfig) -> GateLimits:
    """Return what a phone must show before a start."""
    gate = config.gate
    return GateLimits(
        min_battery_percent=gate.min_battery_percent,
        max_start_thermal=gate.max_start_thermal,
        model_bytes=sum(package.size_bytes for package in packages_of(config)),
        cool_down_limit_s=gate.cool_down_limit_s,
        charge_limit_s=gate.charge_limit_s,
        unlock_limit_s=gate.unlock_limit_s,
    )


def packages_of(config: FleetConfig) -> tuple[ModelPackage, ...]:
    """Return the model packages that a configuration asks for."""
    model = config.model
    if model.engine == "witness":
        return witness_packages(model.capacity_tokens)
    given = {"int4": model.int4, "int8": model.int8}
    return tuple(reference_package(name, Path(kit)) for name, kit in given.items() if kit)


def _phone(planned: PlannedPhone) -> Phone:
    return Phone(
        udid=planned.udid,
        alias=planned.alias,
        name=planned.name,
        product_type=planned.product_type,
        os=planned.os,
        build=planned.build,
        source=planned.source,
        virtual=planned.virtual,
        tags=tuple(planned.tags),
    )
