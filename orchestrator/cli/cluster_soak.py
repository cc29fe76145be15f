"""`fleet soak --cluster`: the composition root of a run over several hosts.

The refusals and their order are those of a single host: configuration (2), phones (3), locks (6),
build (5). Plan, checks and report are the same code.
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from orchestrator.cli.app_package import part_unfit
from orchestrator.cli.cluster_run import ClusterRun, coordinator_state
from orchestrator.cli.compose import Lab, choose_among, package_of, refuse_mistakes, tell_absent
from orchestrator.cli.printing import note
from orchestrator.cli.refusals import refuse_unplayable_scenario
from orchestrator.cli.roster import read_roster, tell
from orchestrator.cli.running import packages_of
from orchestrator.config.load import load_config
from orchestrator.config.resolved import resolved_yaml
from orchestrator.config.scenario import scenario_of, with_budget_of
from orchestrator.device.discovery import normal_udid
from orchestrator.domain.counting import counted
from orchestrator.domain.errors import HeldError, NoPhoneError
from orchestrator.soak.ledger import Quarantine
from orchestrator.soak.plan import (
    Absence,
    Participants,
    lowered_budgets,
    make_plan,
)
from orchestrator.soak.run_directory import RunRecorder, new_run_id
from orchestrator.soak.run_state import RunState
from orchestrator.soak.work_folder import work_folder

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.cli.app_package import AppPackage
    from orchestrator.cli.cluster_access import ClusterAccess
    from orchestrator.cli.compose import SoakOptions
    from orchestrator.cli.roster import Roster
    from orchestrator.config.model import FleetConfig
    from orchestrator.config.workload import Scenario
    from orchestrator.runlog.documents import SummaryDocument

POLL_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class ClusterLab:
    """What a run works with once the command line is read."""

    options: SoakOptions
    access: ClusterAccess
    config: FleetConfig
    scenario: Scenario
    run_id: str


async def run_cluster_soak(
    options: SoakOptions, access: ClusterAccess
) -> tuple[Path, SummaryDocument]:
    """Run a soak on the hosts of a cluster and make its report.

    Raises:
        FleetError: With the exit code of what is wrong, before a run starts.
    """
    config = load_config(options.config, options.settings)
    refuse_mistakes(config, options.output)
    scenario = scenario_of(options.scenario or config.scenario, config.workload, options.duration_s)
    config = with_budget_of(config, scenario)
    lab = ClusterLab(options, access, config, scenario, new_run_id(time.time()))
    participants = await _free_participants(lab)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(work_folder())
        package = await anyio.to_thread.run_sync(
            package_of, Lab(options, config, scenario, lab.run_id, folder, ()), participants
        )
        refuse_unplayable_scenario(scenario, package.planned)
        if package.signed is not None:
            participants = part_unfit(participants, package.signed)
            tell_absent(participants)
        run = _begun(lab, participants, package)
        return await run.carried_out(stop=False)


async def _free_participants(lab: ClusterLab) -> Participants:
    """Return who takes part; with `--wait` once nobody else holds them."""
    told = ""
    while True:
        roster = await read_roster(lab.access)
        participants = _participants(lab, roster)
        held = [
            f"{phone.alias} on {phone.host} is held by {roster.held[phone.udid]}"
            for phone in participants.phones
            if phone.udid in roster.held
        ]
        if not held:
            tell(roster.remarks)
            return participants
        if not lab.options.wait:
            raise HeldError(held[0], remedy="Wait for that run to end (`--wait`), or stop it")
        if held[0] != told:
            told = held[0]
            note(f"waiting: {told}")
        await anyio.sleep(POLL_S)


def _participants(lab: ClusterLab, roster: Roster) -> Participants:
    options = lab.options
    if not roster.phones:
        raise NoPhoneError(
            f"no agent at {lab.access.address} holds a phone",
            remedy="See `fleet devices --cluster`; start `fleet agent` on the hosts",
        )
    quarantined = {
        udid: Quarantine(reason, since_s=0.0, until_s=float("inf"), automatic=True)
        for udid, reason in roster.quarantined.items()
    }
    return choose_among(
        options,
        lab.config,
        roster.phones,
        quarantined=quarantined,
        absent=_absent(lab, roster),
    )


def _absent(lab: ClusterLab, roster: Roster) -> list[Absence]:
    if lab.options.devices.strip().casefold() != "all":
        return []  # who names phones means those alone
    here = {phone.udid for phone in roster.phones}
    return [
        Absence(entry.udid, entry.alias, "expected, but attached to no host")
        for entry in lab.config.expect
        if normal_udid(entry.udid) not in here
    ]


def _begun(lab: ClusterLab, participants: Participants, package: AppPackage) -> ClusterRun:
    """Write the plan, before any phone is touched."""
    packages = {entry.quantization: entry for entry in packages_of(lab.config)}
    plan = make_plan(
        lab.run_id,
        lab.options.seed,
        lab.config,
        lab.scenario,
        participants,
        package.planned,
        packages,
    )
    for sentence in lowered_budgets(lab.config.policy, (one.expected for one in plan.phones)):
        note(sentence)
    state = coordinator_state(lab.run_id)
    run = (lab.options.output / lab.run_id).absolute()
    state.begin(RunState(str(run), None, lab.options.until_s), package.ipa)
    recorder = RunRecorder.begin(
        lab.options.output,
        plan,
        resolved_yaml(lab.config),
        virtual=False,
        cluster=str(lab.access.address),
    )
    hosts = len({phone.host for phone in plan.phones})
    note(
        f"run {lab.run_id}: {counted(len(plan.phones), 'phone')} on {counted(hosts, 'host')}, "
        f"{package.planned.kind} app"
    )
    return ClusterRun(lab.access, lab.config, plan, recorder, lab.scenario.duration_s)
