"""Carries out one host's part of a cluster run, as `fleet soak` and `fleet resume` would."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.holding import hold
from orchestrator.cli.printing import note
from orchestrator.cli.refusals import refuse_living_sessions, refuse_unusable_output
from orchestrator.cli.resuming import LeftRun, go_on
from orchestrator.cli.running import Execution
from orchestrator.config.load import load_config
from orchestrator.device.discovery import UsbmuxSource
from orchestrator.domain.counting import counted
from orchestrator.domain.errors import UsageError
from orchestrator.runlog.manifest import write_manifest
from orchestrator.soak.lock_keys import USBMUX_ENVIRONMENT, lock_key
from orchestrator.soak.locks import Claim
from orchestrator.soak.run_directory import RunRecorder
from orchestrator.soak.run_state import RunState, RunStateFolder
from orchestrator.soak.session import longest_s
from orchestrator.soak.signals import caught_signals

if TYPE_CHECKING:
    from orchestrator.cluster.documents import Slice
    from orchestrator.cluster.slice_folder import SliceFolder
    from orchestrator.config.model import FleetConfig


async def run_slice(place: SliceFolder, stop: bool) -> None:
    """Begin a slice, or go on with it; it then has its manifest.

    Args:
        place: Where it is.
        stop: Whether it only ends in order.

    Raises:
        FleetError: If it cannot begin or go on.
    """
    paths = place.run
    if paths.plan.exists() and paths.config.exists():
        await _resumed(place, stop=stop)
    elif stop:
        raise UsageError("stopped before it began")
    else:
        # Half a beginning is none: no phone is touched before plan and configuration lie there.
        shutil.rmtree(paths.root, ignore_errors=True)
        await _begun(place)
    RunStateFolder.of(place.run_id).remove()  # last: until here a resume finds its way


async def _resumed(place: SliceFolder, *, stop: bool) -> None:
    left = LeftRun.read(place.run.root)
    left.enter_environment()
    if left.run.ended_s is None:
        await go_on(left, stop=stop)
    else:
        write_manifest(left.paths.root)


async def _begun(place: SliceFolder) -> None:
    order = place.order()
    config = _config(order)
    app = place.app(order.app_sha256)
    if not app.exists():
        raise UsageError("the app was not sent", remedy="Start the run again")
    refuse_unusable_output(place.output)
    addresses = {source.name: source.usbmux for source in config.sources}
    phones = order.plan.phones
    async with AsyncExitStack() as stack:
        keys = [lock_key(p.udid, p.alias, addresses[p.source], virtual=p.virtual) for p in phones]
        claim = Claim(order.run_id, longest_s(order.duration_s))
        await hold(stack, keys, claim, wait=False)
        await refuse_living_sessions([(p.alias, p.udid, addresses[p.source]) for p in phones])
        await _executed(place, order, config, app)


async def _executed(place: SliceFolder, order: Slice, config: FleetConfig, app: Path) -> None:
    state = RunStateFolder.of(order.run_id)
    usbmux = os.environ.get(USBMUX_ENVIRONMENT)
    state.begin(RunState(str(place.run.root.absolute()), usbmux, order.until_s), app)
    with caught_signals() as signals:
        recorder = RunRecorder.begin(place.output, order.plan, order.config_yaml, virtual=False)
        phones = counted(len(order.plan.phones), "phone")
        note(f"run {order.run_id}: {phones}, {order.plan.app.kind} app")
        await Execution(
            config=config,
            plan=order.plan,
            duration_s=order.duration_s,
            sources=[UsbmuxSource(source.name, source.usbmux) for source in config.sources],
            ipa=app,
            own_phones=False,
            until_s=order.until_s,
            journal_of=state.new_session,
            signals=signals,
        ).run(recorder)


def _config(order: Slice) -> FleetConfig:
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(order.config_yaml)
        file.flush()
        return load_config(Path(file.name))
