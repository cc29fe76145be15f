"""Goes on with a run whose orchestrator died, as if nothing had happened."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from orchestrator.cli.app_package import SUPPLIED, built_app
from orchestrator.cli.holding import hold
from orchestrator.cli.lineage import reported_at_the_end
from orchestrator.cli.printing import note
from orchestrator.cli.running import Execution
from orchestrator.config.load import load_config
from orchestrator.device.discovery import UsbmuxSource
from orchestrator.domain.counting import counted
from orchestrator.domain.errors import UsageError
from orchestrator.runlog.documents import PlanDocument, RunDocument
from orchestrator.runlog.files import read_document
from orchestrator.runlog.layout import RunPaths
from orchestrator.runlog.manifest import write_manifest
from orchestrator.soak.lock_keys import USBMUX_ENVIRONMENT, lock_key
from orchestrator.soak.locks import Claim
from orchestrator.soak.run_directory import RunRecorder
from orchestrator.soak.run_state import RunStateFolder
from orchestrator.soak.session import longest_s
from orchestrator.soak.signals import caught_signals
from orchestrator.soak.work_folder import work_folder

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.config.model import FleetConfig
    from orchestrator.runlog.documents import SummaryDocument
    from orchestrator.soak.locks import LockKey


@dataclass(frozen=True, slots=True)
class LeftRun:
    """A run directory, and what its dead owner kept elsewhere."""

    paths: RunPaths
    run: RunDocument
    plan: PlanDocument
    config: FleetConfig
    private: RunStateFolder

    @classmethod
    def read(cls, folder: Path) -> LeftRun:
        """Read a run that is to go on.

        Raises:
            UsageError: If it cannot.
            FleetError: If its documents cannot be read.
        """
        paths = RunPaths(folder)
        run = read_document(paths.run, RunDocument)
        if run.virtual:
            raise UsageError(
                f"run {run.run_id} cannot be resumed: its virtual phones ended with it",
                remedy="Start it again; phones of `fleet virtual serve` outlive a run",
            )
        if not (paths.plan.exists() and paths.config.exists()):
            raise UsageError(
                f"run {run.run_id} ended before its plan was written", remedy="Start it again"
            )
        plan = read_document(paths.plan, PlanDocument)
        config = load_config(paths.config, ())
        return cls(paths, run, plan, config, RunStateFolder.of(run.run_id))

    @property
    def duration_s(self) -> float:
        """Inference time per phone, as the app was told."""
        duration_s = self.plan.scenario.get("duration_s")
        return float(duration_s) if isinstance(duration_s, int | float) else 0.0

    def lock_keys(self) -> list[LockKey]:
        """Return what another run on the same phones has equal."""
        addresses = {source.name: source.usbmux for source in self.config.sources}
        return [
            lock_key(phone.udid, phone.alias, addresses[phone.source], virtual=phone.virtual)
            for phone in self.plan.phones
        ]

    def enter_environment(self) -> None:
        """Take over the usbmux address that the dead owner was started with."""
        state = self.private.read()
        if state is not None and state.usbmux is not None:
            os.environ.setdefault(USBMUX_ENVIRONMENT, state.usbmux)


async def resume_run(left: LeftRun, *, stop: bool = False) -> SummaryDocument:
    """Bring a run to its end and write its report.

    Args:
        left: The run.
        stop: Whether its apps are stopped at once; everything is collected all the same.

    Raises:
        HeldError: If its owner lives, or another run has its phones.
        FleetError: If it cannot go on.
    """
    if left.run.ended_s is None:
        left.enter_environment()
        await go_on(left, stop=stop)
    else:
        note(f"run {left.run.run_id} had ended: its report is made again")
        write_manifest(left.paths.root)
    return await anyio.to_thread.run_sync(reported_at_the_end, left.paths.root)


async def go_on(left: LeftRun, *, stop: bool) -> None:
    """Bring a run to its end, its report apart.

    Raises:
        HeldError: If its owner lives, or another run has its phones.
        FleetError: If it cannot go on.
    """
    async with AsyncExitStack() as stack:
        claim = Claim(left.run.run_id, longest_s(left.duration_s))
        await hold(stack, left.lock_keys(), claim, wait=False)
        await _go_on(left, stack, stop=stop)


async def _go_on(left: LeftRun, stack: AsyncExitStack, *, stop: bool) -> None:
    ipa = left.private.app
    if not ipa.exists():
        if left.plan.app.kind == SUPPLIED:
            raise UsageError(
                f"run {left.run.run_id} cannot be resumed: the copy of its --ipa is gone",
                remedy="Start it again",
            )
        folder = stack.enter_context(work_folder())
        virtual = all(phone.virtual for phone in left.plan.phones)
        package = await anyio.to_thread.run_sync(built_app, left.config, folder, virtual)
        ipa = package.ipa
    private = left.private.read()
    signals = stack.enter_context(caught_signals())
    recorder = RunRecorder.reopen(left.paths)
    note(f"run {left.run.run_id}: resumed, {counted(len(left.plan.phones), 'phone')}")
    execution = Execution(
        config=left.config,
        plan=left.plan,
        duration_s=left.duration_s,
        sources=[UsbmuxSource(source.name, source.usbmux) for source in left.config.sources],
        ipa=ipa,
        own_phones=False,
        until_s=private.until_s if private else None,
        journal_of=left.private.left_session,
        signals=signals,
        stopped_by="stop" if stop else None,
    )
    if stop:
        execution.stop.set()
        recorder.event("interrupted", by="stop")
    await execution.run(recorder)
