"""Puts the parts of a calibration together: runs to death, a kill of ours, conclusions, history."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from orchestrator.cli.app_package import part_unfit
from orchestrator.cli.compose import (
    Lab,
    campaign,
    choose,
    find,
    package_of,
    sources_of,
    tell_absent,
)
from orchestrator.cli.holding import hold
from orchestrator.cli.printing import note
from orchestrator.cli.refusals import refuse_living_sessions, refuse_unusable_output
from orchestrator.config.load import load_config
from orchestrator.config.scenario_catalog import CALIBRATION
from orchestrator.device.keeper.broker import KeeperBroker
from orchestrator.device.keeper.start import KeeperStarter
from orchestrator.device.pmd3.link import Pmd3Link
from orchestrator.domain.errors import DeviceError, UsageError
from orchestrator.history.store import History
from orchestrator.runlog.documents import RunDocument
from orchestrator.runlog.files import read_document
from orchestrator.runlog.layout import RunPaths
from orchestrator.soak.calibrating.own_kill import kill_own_app
from orchestrator.soak.calibrating.reading import calibration_of, read_death_runs
from orchestrator.soak.lock_keys import real_address
from orchestrator.soak.locks import Claim
from orchestrator.soak.run_directory import new_run_id
from orchestrator.soak.run_state import RunStateFolder
from orchestrator.soak.session import longest_s
from orchestrator.soak.work_folder import work_folder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.cli.compose import SoakOptions
    from orchestrator.domain.calibration import Calibration
    from orchestrator.domain.phone import Phone

FOLDER: Final = "calibrations"  # below the runs: deaths on order are no soaks


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """What a calibration came to."""

    calibrations: tuple[Calibration, ...]
    unmeasured: tuple[str, ...]  # aliases of phones whose app never said hello
    interrupted_by: str | None  # the signal that ended it early


async def run_calibration(options: SoakOptions, deaths: int) -> CalibrationResult:
    """Calibrate the selected phones and store what was measured.

    Raises:
        FleetError: With the exit code of what is wrong, before a phone is touched.
    """
    config = load_config(options.config, options.settings)
    if config.harness.defect is not None:
        raise UsageError(
            "a calibration with harness.defect would measure the defect", remedy="Leave it out"
        )
    refuse_unusable_output(options.output)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(work_folder())
        sources = await sources_of(options, config, folder, stack)
        below = replace(options, output=options.output / FOLDER)
        lab = Lab(below, config, CALIBRATION, new_run_id(time.time()), folder, sources)
        participants = choose(below, config, await find(config, sources))
        phones = participants.phones
        claim = Claim(lab.run_id, deaths * longest_s(CALIBRATION.duration_s))
        await hold(stack, [lab.lock_key(phone) for phone in phones], claim, wait=options.wait)
        await refuse_living_sessions(
            [(phone.alias, phone.udid, lab.address_of(phone.source)) for phone in phones]
        )
        package = await anyio.to_thread.run_sync(package_of, lab, participants)
        if package.signed is not None:
            participants = part_unfit(participants, package.signed)
            tell_absent(participants)
            phones = participants.phones
        runs: list[Path] = []
        interrupted_by = None
        while len(runs) < deaths and interrupted_by is None:
            again = replace(lab, run_id=new_run_id(time.time()))
            run = await campaign(again, participants, package)
            RunStateFolder.of(again.run_id).remove()  # a calibration is not resumed
            interrupted_by = read_document(RunPaths(run).run, RunDocument).interrupted_by
            runs.append(run)
        own_kills: dict[str, str | None] = {}
        if interrupted_by is None:
            own_kills = await _own_kills(lab, phones, package.planned.bundle_id)
    measured = await anyio.to_thread.run_sync(_concluded, runs, own_kills)
    history = History(options.history)
    for calibration in measured:
        history.calibrate(calibration)
    known = {calibration.udid for calibration in measured}
    missing = tuple(phone.alias for phone in phones if phone.udid not in known)
    for alias in missing:
        note(f"{alias}: not measured; see {runs[-1]}")
    return CalibrationResult(measured, missing, interrupted_by)


def _concluded(runs: Sequence[Path], own_kills: dict[str, str | None]) -> tuple[Calibration, ...]:
    now_s = time.time()
    found = (
        calibration_of(of_phone, own_kills.get(udid), now_s)
        for udid, of_phone in read_death_runs(runs).items()
    )
    return tuple(calibration for calibration in found if calibration is not None)


async def _own_kills(lab: Lab, phones: Sequence[Phone], bundle_id: str) -> dict[str, str | None]:
    """Kill the app on every phone; one that cannot be is told of and has None."""
    seen: dict[str, str | None] = {}
    tunnelds = {source.name: source.tunneld for source in lab.config.sources}

    async def kill(phone: Phone, starter: KeeperStarter) -> None:
        broker = KeeperBroker(
            starter,
            die_with_parent=lab.options.virtual,
            tunneld=tunnelds.get(phone.source),
        )
        link = Pmd3Link(phone, real_address(lab.address_of(phone.source)), broker)
        try:
            seen[phone.udid] = await kill_own_app(link, bundle_id)
        except DeviceError as error:
            note(f"note: a kill by us was not measured: {error}")

    async with KeeperStarter() as starter, anyio.create_task_group() as tasks:
        for phone in phones:
            tasks.start_soon(kill, phone, starter)
    return seen
