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

from orchestrator.cli.app_package import AppPackage, built_app, part_unfit, supplied_app
from orchestrator.cli.calibrations import calibrated_limits
from orchestrator.cli.holding import hold
from orchestrator.cli.iphone_build import demands_of
from orchestrator.cli.lineage import reported_at_the_end
from orchestrator.cli.printing import note
from orchestrator.cli.refusals import (
    refuse_living_sessions,
    refuse_unknown_defect,
    refuse_unplayable_scenario,
    refuse_unusable_output,
)
from orchestrator.cli.running import Execution, packages_of
from orchestrator.config.load import load_config
from orchestrator.config.resolved import resolved_yaml
from orchestrator.config.scenario import scenario_of, with_budget_of
from orchestrator.device.discovery import Expected, UsbmuxSource, discover
from orchestrator.device.pmd3.browser import UsbmuxBrowser
from orchestrator.device.selection import select
from orchestrator.domain.counting import counted
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import NoPhoneError, UsageError
from orchestrator.history.store import DATABASE_NAME
from orchestrator.soak.farm import FarmSpec, virtual_phones
from orchestrator.soak.ledger import Ledger, Quarantine
from orchestrator.soak.lock_keys import USBMUX_ENVIRONMENT, lock_key
from orchestrator.soak.locks import Claim
from orchestrator.soak.plan import (
    Absence,
    Participants,
    lowered_budgets,
    make_plan,
    part_quarantined,
)
from orchestrator.soak.run_directory import RunRecorder, new_run_id
from orchestrator.soak.run_state import RunState, RunStateFolder
from orchestrator.soak.session import longest_s
from orchestrator.soak.session_state import SessionJournal
from orchestrator.soak.signals import caught_signals
from orchestrator.soak.work_folder import work_folder
from orchestrator.verdict.catalog import unknown_limit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.config.model import FleetConfig
    from orchestrator.config.workload import Scenario
    from orchestrator.device.discovery import Discovery
    from orchestrator.domain.phone import Phone
    from orchestrator.runlog.documents import PlannedPhone, SummaryDocument
    from orchestrator.soak.locks import LockKey

DISCOVERY_LIMIT_S: Final = 30.0
VIRTUAL_LOG: Final = "virtual-phones.log"
VIRTUAL_EVENTS: Final = "virtual-phones.ndjson"  # what happened to them, faults included


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
    until_s: float | None = None  # wall clock
    wait: bool = False  # for phones that another run holds
    ipa: Path | None = None  # a signed app that was given; None: ours is built
    bundle_id: str | None = None  # that it must have
    one_phone: bool = False  # the first of those selected is enough

    @property
    def history(self) -> Path:
        """The database beside the runs."""
        return self.output / DATABASE_NAME


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

    def lock_key(self, phone: Phone) -> LockKey:
        """Return what another run on the same phone has equal."""
        address = self.address_of(phone.source)
        return lock_key(phone.udid, phone.alias, address, virtual=phone.virtual)


async def run_soak(options: SoakOptions) -> tuple[Path, SummaryDocument]:
    """Run a soak and its report; return the run directory and the summary.

    Raises:
        FleetError: With the exit code of what is wrong, before a run starts.
    """
    config = load_config(options.config, options.settings)
    refuse_mistakes(config, options.output)
    scenario = scenario_of(options.scenario or config.scenario, config.workload, options.duration_s)
    config = with_budget_of(config, scenario)
    run_id = new_run_id(time.time())
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(work_folder())
        sources = await sources_of(options, config, folder, stack)
        lab = Lab(options, config, scenario, run_id, folder, sources)
        found = await find(config, sources)
        participants = choose(options, config, found)
        keys = [lab.lock_key(phone) for phone in participants.phones]
        claim = Claim(run_id, longest_s(scenario.duration_s))
        await hold(stack, keys, claim, wait=options.wait)
        await refuse_living_sessions(
            [(p.alias, p.udid, lab.address_of(p.source)) for p in participants.phones]
        )
        package = await anyio.to_thread.run_sync(package_of, lab, participants)
        refuse_unplayable_scenario(scenario, package.planned)
        if package.signed is not None:
            participants = part_unfit(participants, package.signed)
            tell_absent(participants)
        paths = await campaign(lab, participants, package)
    summary = await anyio.to_thread.run_sync(reported_at_the_end, paths)
    return paths, summary


def refuse_mistakes(config: FleetConfig, output: Path) -> None:
    """Refuse what no phone is needed to know: limits, defects, the output folder.

    Raises:
        UsageError: For the first of them.
    """
    mistake = unknown_limit(config.checks)
    if mistake is not None:
        raise UsageError(mistake, remedy="docs/reference/checks.md lists the limits of every check")
    refuse_unknown_defect(config.harness.defect)
    refuse_unusable_output(output)


async def sources_of(
    options: SoakOptions, config: FleetConfig, folder: Path, stack: AsyncExitStack
) -> tuple[UsbmuxSource, ...]:
    """Return where phones are found; starts virtual ones, which the stack ends."""
    if not options.virtual:
        return tuple(UsbmuxSource(source.name, source.usbmux) for source in config.sources)
    spec = FarmSpec(
        phones=[(phone.model, phone.os) for phone in config.virtual.phones],
        memory_scale=config.virtual.memory_scale,
        log=folder / VIRTUAL_LOG,
        faults=_script(config),
        events=folder / VIRTUAL_EVENTS,
        limits_mib={
            place: phone.limit_mib
            for place, phone in enumerate(config.virtual.phones, 1)
            if phone.limit_mib is not None
        },
        entitled=config.harness.increased_memory_limit,
    )
    farm = await stack.enter_async_context(virtual_phones(spec))
    # The client library reads the address from the environment in places that ignore its argument.
    os.environ[USBMUX_ENVIRONMENT] = farm.usbmux
    return (UsbmuxSource("virtual", farm.usbmux),)


def package_of(lab: Lab, participants: Participants) -> AppPackage:
    """Build the app of a run, or take the one that was given; blocks."""
    options, phones = lab.options, participants.phones
    virtual = all(phone.virtual for phone in phones)
    soak_s = longest_s(lab.scenario.duration_s)
    if options.ipa is None:
        return built_app(lab.config, lab.folder, virtual, soak_s=soak_s, phones=phones)
    demands = demands_of(lab.config, soak_s, options.bundle_id)
    return supplied_app(options.ipa, demands, lab.folder, virtual)


def tell_absent(participants: Participants) -> None:
    """Name on stderr who belongs to the run and cannot take part."""
    for absence in participants.absent:
        note(f"missing: {absence.alias}: {absence.reason}")


def _script(config: FleetConfig) -> list[dict[str, object]]:
    """Return the faults of the configuration; one that makes no sense is refused here."""
    from orchestrator.virtual.faults.engine import scripted

    script = [fault.model_dump() for fault in config.virtual.faults]
    for fault in script:
        scripted(fault)
    return script


async def find(config: FleetConfig, sources: Sequence[UsbmuxSource]) -> Discovery:
    """Return what the sources have; dead ones are told at once."""
    discovery = await discover(
        sources,
        UsbmuxBrowser(),
        deadline=Deadline.after(DISCOVERY_LIMIT_S),
        expected=[Expected(p.udid, p.alias, p.tags) for p in config.expect],
    )
    for source in discovery.dead_sources:
        note(f"note: source {source.reason}")
    return discovery


def choose(options: SoakOptions, config: FleetConfig, discovery: Discovery) -> Participants:
    """Return who of this host takes part.

    Raises:
        FleetError: If `--devices` makes no sense, or nobody is left.
    """
    return choose_among(
        options,
        config,
        discovery.phones,
        quarantined={} if options.virtual else Ledger().quarantined(time.time()),
        absent=_absent(options.devices, discovery),
    )


def choose_among(
    options: SoakOptions,
    config: FleetConfig,
    phones: Sequence[Phone],
    *,
    quarantined: Mapping[str, Quarantine],
    absent: Sequence[Absence],
) -> Participants:
    """Return who takes part, who is left out and who is missing; says who is left out.

    Args:
        options: With `--devices`.
        config: With the phones that are expected.
        phones: All there are.
        quarantined: By UDID.
        absent: Who is expected and not among them.

    Raises:
        FleetError: If `--devices` makes no sense, or nobody is left.
    """
    selection = select(options.devices, phones, include_unlisted=options.include_unlisted)
    parted = part_quarantined(
        selection.phones, quarantined, {entry.udid for entry in config.expect}
    )
    for skipped in (*selection.skipped, *parted.skipped):
        note(f"skipped: {skipped.phone.alias}: {skipped.reason}")
    if not parted.phones:
        raise NoPhoneError(
            "every phone that was selected is in quarantine", remedy="See `fleet quarantine list`"
        )
    return Participants(
        phones=parted.phones[:1] if options.one_phone else parted.phones,
        skipped=(*selection.skipped, *parted.skipped),
        absent=(*absent, *parted.absent),
    )


def _absent(devices: str, discovery: Discovery) -> tuple[Absence, ...]:
    if devices.strip().casefold() != "all":
        return ()  # who names phones means those alone
    missing = [Absence(e.udid, e.alias, "expected, but not attached") for e in discovery.absent]
    mute = [Absence(u.udid, u.udid[-8:], u.reason) for u in discovery.unreachable]
    return tuple(missing + mute)


async def campaign(lab: Lab, participants: Participants, package: AppPackage) -> Path:
    """Carry a plan out and return its run directory."""
    packages = {entry.quantization: entry for entry in packages_of(lab.config)}
    plan = make_plan(
        lab.run_id,
        lab.options.seed,
        lab.config,
        lab.scenario,
        participants,
        package.planned,
        packages,
        calibrated_limits(lab.options.history, lab.config, participants.phones),
    )
    for sentence in lowered_budgets(lab.config.policy, (one.expected for one in plan.phones)):
        note(sentence)
    state = _private_state(lab, package)
    files = [lab.folder / name for name in (VIRTUAL_LOG, VIRTUAL_EVENTS)]
    with caught_signals() as signals:
        recorder = RunRecorder.begin(
            lab.options.output, plan, resolved_yaml(lab.config), virtual=lab.options.virtual
        )
        note(f"run {lab.run_id}: {counted(len(plan.phones), 'phone')}, {package.planned.kind} app")
        await Execution(
            config=lab.config,
            plan=plan,
            duration_s=lab.scenario.duration_s,
            sources=lab.sources,
            ipa=package.ipa,
            own_phones=lab.options.virtual,
            until_s=lab.options.until_s,
            journal_of=state.new_session if state else _unkept_session,
            signals=signals,
            kept=[path for path in files if path.exists()],
        ).run(recorder)
    return recorder.paths.root


def _private_state(lab: Lab, package: AppPackage) -> RunStateFolder | None:
    """Keep what a resume needs, unless the phones die with this process anyway."""
    if lab.options.virtual:
        return None
    state = RunStateFolder.of(lab.run_id)
    run = (lab.options.output / lab.run_id).absolute()
    usbmux = os.environ.get(USBMUX_ENVIRONMENT)
    state.begin(RunState(str(run), usbmux, lab.options.until_s), package.ipa)
    return state


def _unkept_session(_: PlannedPhone) -> SessionJournal:
    return SessionJournal()
