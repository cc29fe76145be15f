"""An agent: a Dask worker that holds phones, announces them, and answers for their runs.

The worker comes and goes with the scheduler; phones, processes and run directories stay. Bulk
leaves by the agent's own port, asked for by the coordinator directly: never by the scheduler.
"""

from __future__ import annotations

import asyncio
import platform
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec
from distributed import Worker
from distributed.core import rpc
from distributed.diagnostics.plugin import WorkerPlugin

import orchestrator
from orchestrator.cluster.apps import AppStore
from orchestrator.cluster.documents import AgentReport, Slice
from orchestrator.cluster.live import TOPIC, LiveSummary
from orchestrator.cluster.orders import localised
from orchestrator.cluster.quiet import Unserved
from orchestrator.cluster.run_files import listing, read_chunk
from orchestrator.cluster.slice_folder import SliceFolder, slice_folders
from orchestrator.cluster.supervision import MIN_FREE_BYTES, Supervisor
from orchestrator.domain.errors import FleetError, UsageError
from orchestrator.soak.progress import run_progress
from orchestrator.soak.state_folder import private_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from distributed.security import Security

    from orchestrator.cluster.address import Address
    from orchestrator.cluster.attached import AttachedPhones

PLUGIN: Final = "fleet"
RESOURCE: Final = "phone:"  # + UDID; a phone is one of its kind
SLICES_AT_ONCE: Final = 64  # each only waits
AGAIN_S: Final = (1.0, 2.0, 5.0)  # before the scheduler is looked for again; the last repeats
HELLO_LIMIT_S: Final = 10.0
CLOSE_LIMIT_S: Final = 5.0
LOOK_S: Final = 0.5
# What Dask raises where the other side is not there, or not there any more.
_LOST: Final = (OSError, TimeoutError, asyncio.CancelledError, RuntimeError, ValueError)
LIVE_PERIOD_S: Final = 2.0


class AgentWorker(Unserved, Worker):  # type: ignore[misc]  # Dask is not typed
    """A Dask worker with one port and no web page."""


class FleetPlugin(WorkerPlugin):  # type: ignore[misc]
    """Lets a task find the agent it runs on."""

    name = PLUGIN

    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor = supervisor


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """How an agent runs."""

    name: str
    scheduler: Address
    listen: Address
    contact: str | None  # how others reach it, where that is not the address it listens on
    folder: Path
    security: Security | None
    min_free_bytes: int = MIN_FREE_BYTES


class Agent:
    """One host of a cluster.

    Args:
        options: How it runs.
        phones: What is attached.
        tell: Says what a person should know.
    """

    def __init__(
        self, options: AgentOptions, phones: AttachedPhones, tell: Callable[[str], None]
    ) -> None:
        self._options, self._phones, self._tell = options, phones, tell
        self._apps = AppStore(options.folder / "apps")
        self._worker: AgentWorker | None = None
        self._announced: frozenset[str] = frozenset()
        self._refusal: UsageError | None = None

    async def run(self, stop: anyio.Event) -> None:
        """Serve until `stop` is set. Runs that are not over are gone on with at once.

        Raises:
            UsageError: If the scheduler refuses this agent, or its port is taken.
        """
        for name in ("", "runs", "slices", "apps"):
            private_folder(self._options.folder / name)
        async with anyio.create_task_group() as tasks:
            supervisor = Supervisor(
                self._options.folder,
                tasks,
                partial(localised, config=self._phones.config),
                self._options.min_free_bytes,
            )
            supervisor.take_up_all()
            await self._phones.look()
            tasks.start_soon(self._phones.watch, self._announce)
            tasks.start_soon(self._stay_connected, supervisor, stop)
            await stop.wait()
            tasks.cancel_scope.cancel()
        if self._refusal is not None:
            raise self._refusal

    async def _stay_connected(self, supervisor: Supervisor, stop: anyio.Event) -> None:
        failures = 0
        while True:
            try:
                await self._check_version()
                await self._connected(supervisor)
                failures = 0
                self._tell("the scheduler went away; looking for it")
            except UsageError as error:
                self._refusal = error
                stop.set()
                return
            except _LOST as error:
                _raise_if_cancelled()
                if failures == 0:
                    self._tell(
                        f"no scheduler at {self._options.scheduler}: {str(error) or 'no answer'}"
                    )
                failures += 1
            await anyio.sleep(AGAIN_S[min(failures, len(AGAIN_S)) - 1])

    async def _check_version(self) -> None:
        """Ask the scheduler whether it takes this agent.

        Raises:
            UsageError: With both versions, if it does not.
        """
        security = self._options.security
        arguments = security.get_connection_args("worker") if security else {}
        peer = rpc(str(self._options.scheduler), connection_args=arguments)
        try:
            with anyio.fail_after(HELLO_LIMIT_S):
                answer = await peer.fleet_hello(
                    name=self._options.name, version=orchestrator.__version__
                )
        finally:
            await peer.close_rpc()
        if answer.get("refusal"):
            raise UsageError(str(answer["refusal"]), remedy="Install one version on all hosts")

    async def _connected(self, supervisor: Supervisor) -> None:
        options = self._options
        worker = AgentWorker(
            str(options.scheduler),
            name=options.name,
            host=options.listen.host,
            port=options.listen.port,
            protocol=options.listen.protocol,
            contact_address=options.contact,
            security=options.security,
            nthreads=SLICES_AT_ONCE,
            memory_limit=0,
            local_directory=str(options.folder / "dask"),
            resources=self._resources(),
            dashboard=False,
            plugins=[FleetPlugin(supervisor)],
            death_timeout=None,
        )
        worker.handlers.update(self._handlers(supervisor))
        try:
            await worker
            self._worker = worker
            self._tell(f"agent {options.name} at {worker.contact_address}, {self._count()}")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._tell_live, worker, supervisor)
                await worker.finished()
                tasks.cancel_scope.cancel()
        finally:
            self._worker = None
            with anyio.move_on_after(CLOSE_LIMIT_S, shield=True), suppress(*_LOST):
                await worker.close(timeout=1, nanny=False)

    async def _tell_live(self, worker: AgentWorker, supervisor: Supervisor) -> None:
        """Send how far the phones are, a few hundred bytes, whenever that changed."""
        told: dict[str, LiveSummary] = {}
        while True:
            for run_id in supervisor.unfinished():
                place = SliceFolder(self._options.folder, run_id)
                summary = LiveSummary.read(place.run, self._options.name)
                if summary is not None and told.get(run_id) != summary:
                    told[run_id] = summary
                    worker.log_event(TOPIC, summary.as_json())
            await anyio.sleep(LIVE_PERIOD_S)

    def _count(self) -> str:
        count = len(self._phones.udids())
        return f"{count} phone{'' if count == 1 else 's'}"

    def _resources(self) -> dict[str, int]:
        self._announced = self._phones.udids()
        return {f"{RESOURCE}{udid}": 1 for udid in self._announced}

    async def _announce(self) -> None:
        self._tell(f"agent {self._options.name}: {self._count()}")
        worker = self._worker
        if worker is None:
            return  # announced as it connects
        gone = {f"{RESOURCE}{udid}": 0 for udid in self._announced - self._phones.udids()}
        try:
            await worker.set_resources(**gone, **self._resources())
        except (OSError, TimeoutError):
            return  # the worker is about to notice

    def _handlers(self, supervisor: Supervisor) -> dict[str, Callable[..., Any]]:
        """What the coordinator asks directly; answers are small, chunks of files apart."""
        folder = self._options.folder

        def fleet_report() -> bytes:
            return msgspec.json.encode(self._report())

        def fleet_clock() -> float:
            return time.time()

        def fleet_state(run_id: str) -> bytes:
            return msgspec.json.encode(supervisor.state(run_id))

        def fleet_accept(order: str) -> None:
            supervisor.accept(msgspec.json.decode(order, type=Slice))

        def fleet_stop(run_id: str) -> bool:
            return supervisor.stop(run_id)

        def fleet_listing(run_id: str) -> bytes:
            return msgspec.json.encode(listing(SliceFolder(folder, run_id).run.root))

        def fleet_read(run_id: str, name: str, offset: int) -> bytes:
            return read_chunk(SliceFolder(folder, run_id).run.root, name, offset)

        def fleet_runs(last: int) -> bytes:
            return msgspec.json.encode(self._progress(supervisor, last))

        return {
            handler.__name__: handler
            for handler in (
                fleet_report,
                fleet_clock,
                fleet_state,
                fleet_accept,
                fleet_stop,
                fleet_listing,
                fleet_read,
                fleet_runs,
                self._apps.fleet_app_size,
                self._apps.fleet_app_chunk,
            )
        }

    def _report(self) -> AgentReport:
        return AgentReport(
            name=self._options.name,
            version=orchestrator.__version__,
            platform=f"{platform.system()} {platform.release()} {platform.machine()}",
            phones=self._phones.described(),
            remarks=list(self._phones.remarks),
            free_bytes=shutil.disk_usage(self._options.folder).free,
        )

    def _progress(self, supervisor: Supervisor, last: int) -> list[dict[str, Any]]:
        """Return the newest runs: state, why they wait, and how far their phones are."""
        found = []
        for place in slice_folders(self._options.folder)[-last:]:
            state = supervisor.state(place.run_id)
            row: dict[str, Any] = {"run_id": place.run_id, "state": state, "progress": None}
            try:
                lives = place.holder() is not None
                row["progress"] = run_progress(place.run, time.time(), owner_lives=lives)
            except FleetError:
                pass
            found.append(row)
        return found


def _raise_if_cancelled() -> None:
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
