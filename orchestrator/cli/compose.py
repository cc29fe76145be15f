"""Puts the parts of a run together, in the order that refusals have.

Configuration and names (2), phones (3), locks (6), build (5): nothing is built before the
selection stands, and no directory is made before a run can start.
"""

from __future__ import annotations

import os
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.cli.app_package import AppPackage, built_app
from orchestrator.cli.printing import note
from orchestrator.config.load import load_config
from orchestrator.config.resolved import resolved_yaml, unused_blocks
from orchestrator.config.scenario import scenario_of
from orchestrator.device.discovery import Expected, UsbmuxSource, discover
from orchestrator.device.keeper.broker import KeeperBroker
from orchestrator.device.keeper.start import KeeperStarter
from orchestrator.device.pmd3.browser import UsbmuxBrowser
from orchestrator.device.pmd3.link import Pmd3Link
from orchestrator.device.selection import select
from orchestrator.domain.deadline import Deadline
from orchestrator.harness.models import witness_packages
from orchestrator.report.remake import remake
from orchestrator.soak.campaign import Campaign
from orchestrator.soak.farm import FarmSpec, virtual_phones
from orchestrator.soak.locks import lock_folder, phones_held
from orchestrator.soak.plan import Absence, Participants, make_plan
from orchestrator.soak.run_directory import RunRecorder, new_run_id
from orchestrator.soak.session import SessionOrder
from orchestrator.soak.work_folder import work_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.config.model import FleetConfig
    from orchestrator.config.scenario import Scenario
    from orchestrator.device.discovery import Discovery
    from orchestrator.domain.phone import Phone
    from orchestrator.harness.models import ModelPackage
    from orchestrator.runlog.documents import PlanDocument, PlannedPhone, SummaryDocument

DISCOVERY_LIMIT_S: Final = 30.0
VIRTUAL_LOG: Final = "virtual-phones.log"
USBMUX_ENVIRONMENT: Final = "USBMUXD_SOCKET_ADDRESS"


@dataclass(frozen=True, slots=True)
class SoakOptions:
    """The command line of `fleet soak`, read."""

    devices: str
    virtual: bool
    duration_s: float | None
    scenario: str | None
    output: Path
    config: Path | None
    settings: tuple[str, ...]
    seed: int
    include_unlisted: bool


@dataclass(frozen=True, slots=True)
class Lab:
    """What a run works with once the command line is read."""

    options: SoakOptions
    config: FleetConfig
    scenario: Scenario
    run_id: str
    folder: Path  # for what the run needs and nobody keeps
    sources: tuple[UsbmuxSource, ...]

    def address_of(self, source: str) -> str:
        """Return the usbmux address of a source by its name."""
        return next(entry.address for entry in self.sources if entry.name == source)

    def lock_key(self, phone: Phone) -> tuple[str, str, str]:
        """Return what another run on the same phone has equal."""
        address = self.address_of(phone.source)
        if address == "default":
            address = os.environ.get(USBMUX_ENVIRONMENT, address)
        return address, phone.udid, phone.alias


async def run_soak(options: SoakOptions) -> tuple[Path, SummaryDocument]:
    """Run a soak and its report; return the run directory and the summary.

    Raises:
        FleetError: With the exit code of what is wrong, before a run starts.
    """
    config = load_config(options.config, options.settings)
    for name in unused_blocks(config):
        note(f"note: {name} is read but not used by this version")
    scenario = scenario_of(options.scenario or config.scenario, config.workload, options.duration_s)
    run_id = new_run_id(time.time())
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(work_folder())
        sources = await _sources(options, config, folder, stack)
        lab = Lab(options, config, scenario, run_id, folder, sources)
        participants = await _participants(lab)
        keys = [lab.lock_key(phone) for phone in participants.phones]
        stack.enter_context(phones_held(keys, run_id, folder=lock_folder()))
        virtual = all(phone.virtual for phone in participants.phones)
        package = await anyio.to_thread.run_sync(built_app, config, folder, virtual)
        paths = await _campaign(lab, participants, package)
    summary = await anyio.to_thread.run_sync(remake, paths)
    return paths, summary


async def _sources(
    options: SoakOptions, config: FleetConfig, folder: Path, stack: AsyncExitStack
) -> tuple[UsbmuxSource, ...]:
    if not options.virtual:
        return tuple(UsbmuxSource(source.name, source.usbmux) for source in config.sources)
    spec = FarmSpec(
        phones=[(phone.model, phone.os) for phone in config.virtual.phones],
        memory_scale=config.virtual.memory_scale,
        log=folder / VIRTUAL_LOG,
    )
    farm = await stack.enter_async_context(virtual_phones(spec))
    # The client library reads the address from the environment in places that ignore its argument.
    os.environ[USBMUX_ENVIRONMENT] = farm.usbmux
    return (UsbmuxSource("virtual", farm.usbmux),)


async def _participants(lab: Lab) -> Participants:
    discovery = await discover(
        lab.sources,
        UsbmuxBrowser(),
        deadline=Deadline.after(DISCOVERY_LIMIT_S),
        expected=[Expected(p.udid, p.alias, p.tags) for p in lab.config.expect],
    )
    for source in discovery.dead_sources:
        note(f"note: source {source.source}: {source.reason}")
    selection = select(
        lab.options.devices, discovery.phones, include_unlisted=lab.options.include_unlisted
    )
    for skipped in selection.skipped:
        note(f"skipped: {skipped.phone.alias}: {skipped.reason}")
    return Participants(
        phones=selection.phones,
        skipped=selection.skipped,
        absent=_absent(lab.options.devices, discovery),
    )


def _absent(devices: str, discovery: Discovery) -> tuple[Absence, ...]:
    if devices.strip().casefold() != "all":
        return ()  # who names phones means those alone
    missing = [Absence(e.udid, e.alias, "expected, but not attached") for e in discovery.absent]
    mute = [Absence(u.udid, u.udid[-8:], u.reason) for u in discovery.unreachable]
    return tuple(missing + mute)


async def _campaign(lab: Lab, participants: Participants, package: AppPackage) -> Path:
    packages = {
        entry.quantization: entry for entry in witness_packages(lab.config.model.capacity_tokens)
    }
    plan = make_plan(
        lab.run_id,
        lab.options.seed,
        lab.config,
        lab.scenario,
        participants,
        package.planned,
        packages,
    )
    recorder = RunRecorder.begin(
        lab.options.output, plan, resolved_yaml(lab.config), virtual=lab.options.virtual
    )
    note(f"run {lab.run_id}: {len(plan.phones)} phones, {package.planned.kind} app")
    async with KeeperStarter() as starter:
        brokers = {source.name: _broker(lab, source, starter) for source in lab.sources}
        by_udid = {phone.udid: phone for phone in participants.phones}

        def link_to(phone: PlannedPhone) -> Pmd3Link:
            address = lab.address_of(phone.source)
            return Pmd3Link(by_udid[phone.udid], address, brokers[phone.source])

        orders = _orders(lab, plan, package, packages)
        log = lab.folder / VIRTUAL_LOG
        await Campaign(orders, link_to, recorder, kept=[log] if log.exists() else []).run()
    return recorder.paths.root


def _broker(lab: Lab, source: UsbmuxSource, starter: KeeperStarter) -> KeeperBroker:
    tunneld = {entry.name: entry.tunneld for entry in lab.config.sources}.get(source.name)
    # Phones that a run started itself die with it; others keep app and keeper for the lease.
    return KeeperBroker(starter, die_with_parent=lab.options.virtual, tunneld=tunneld)


def _orders(
    lab: Lab,
    plan: PlanDocument,
    package: AppPackage,
    packages: Mapping[str, ModelPackage],
) -> Sequence[SessionOrder]:
    return [
        SessionOrder(
            plan=plan,
            phone=phone,
            ipa=package.ipa,
            packages=tuple(packages.values()),
            duration_s=lab.scenario.duration_s,
            defect=lab.config.harness.defect,
            min_battery_percent=lab.config.gate.min_battery_percent,
            report_wait_s=lab.config.evidence.report_wait_s,
        )
        for phone in plan.phones
    ]
