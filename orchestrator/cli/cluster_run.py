"""One run over several hosts, from its plan to its report: begun now, or left by a dead process."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from msgspec import structs

from orchestrator.cli.lineage import reported
from orchestrator.cli.printing import note
from orchestrator.cluster.coordinator import Coordinator
from orchestrator.cluster.join import interrupted_by
from orchestrator.cluster.joining import mirrored_part, seal, write_events
from orchestrator.cluster.orders import orders_of
from orchestrator.config.load import load_config
from orchestrator.domain.errors import UsageError
from orchestrator.runlog.documents import PlanDocument
from orchestrator.runlog.files import read_document
from orchestrator.runlog.layout import RunPaths
from orchestrator.soak.locks import Claim, LockKey, lock_folder, phones_held
from orchestrator.soak.run_directory import RunRecorder
from orchestrator.soak.run_state import RunStateFolder
from orchestrator.soak.session import longest_s
from orchestrator.soak.signals import stop_on_signal

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.cli.cluster_access import ClusterAccess
    from orchestrator.config.model import FleetConfig
    from orchestrator.runlog.documents import SummaryDocument


def coordinator_state(run_id: str) -> RunStateFolder:
    """Return where a coordinator keeps the app; an agent on this host keeps its own elsewhere."""
    return RunStateFolder.of(f"coordinator-{run_id}")


def coordinator_key(run_id: str) -> LockKey:
    """Return what two coordinators of one run have equal."""
    return LockKey(f"coordinator {run_id}", "coordinator")


@dataclass(slots=True)
class ClusterRun:
    """A run whose plan is written."""

    access: ClusterAccess
    config: FleetConfig
    plan: PlanDocument
    recorder: RunRecorder
    duration_s: float
    _interrupted_by: str | None = None

    @classmethod
    def left(cls, folder: Path, access: ClusterAccess) -> ClusterRun:
        """Take over a run whose coordinator died.

        Raises:
            FleetError: If its documents cannot be read.
        """
        paths = RunPaths(folder)
        if not (paths.plan.exists() and paths.config.exists()):
            raise UsageError(f"{folder} ended before its plan was written", remedy="Start it again")
        plan = read_document(paths.plan, PlanDocument)
        duration_s = plan.scenario.get("duration_s")
        return cls(
            access,
            load_config(paths.config),
            plan,
            RunRecorder.reopen(paths),
            float(duration_s) if isinstance(duration_s, int | float) else 0.0,
        )

    async def carried_out(self, *, stop: bool) -> tuple[Path, SummaryDocument]:
        """Bring the run to its end and make its report.

        Args:
            stop: Whether its apps are stopped at once; everything is collected all the same.

        Raises:
            HeldError: If another coordinator has the run.
        """
        root = self.recorder.paths.root
        key = coordinator_key(self.plan.run_id)
        claim = Claim(self.plan.run_id, longest_s(self.duration_s))
        with phones_held([key], claim, folder=lock_folder()):
            ended = await self._coordinated(stop=stop)
            summary = await anyio.to_thread.run_sync(reported, root)
        if ended:
            coordinator_state(self.plan.run_id).remove()
        else:
            note("a host is away: `fleet resume` goes on with the run when it is back")
        return root, summary

    async def _coordinated(self, *, stop: bool) -> bool:
        """Return whether the run came to its end."""
        private = coordinator_state(self.plan.run_id)
        state = private.read()
        stopped = anyio.Event()
        coordinator = Coordinator(
            address=self.access.address,
            security=self.access.security,
            recorder=self.recorder,
            orders=orders_of(
                self.plan, self.config, self.duration_s, state.until_s if state else None
            ),
            app=private.app if private.app.exists() else None,
            return_limit_s=self.config.cluster.return_limit_s,
            stop=stopped,
            tell=note,
        )
        if stop:
            self._note_stop("stop")
            stopped.set()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop_on_signal, stopped, self._note_stop)
            await coordinator.run()
            tasks.cancel_scope.cancel()
        return self._finished(coordinator)

    def _note_stop(self, name: str) -> None:
        self._interrupted_by = name
        self.recorder.event("interrupted", by=name)

    def _finished(self, coordinator: Coordinator) -> bool:
        root = self.recorder.paths.root
        over = all(host.is_over for host in coordinator.hosts.values())
        clocks = {name: host.clock for name, host in coordinator.hosts.items()}
        found = [mirrored_part(root, name, clock) for name, clock in clocks.items()]
        parts = [part for part in found if part is not None]
        by = self._interrupted_by or interrupted_by(parts)
        if over:
            self.recorder.event("run_ended", interrupted_by=by)
        self.recorder.events.close()
        write_events(root, parts)
        document = structs.replace(
            self.recorder.document, parts=[part.document() for part in parts]
        )
        if over:
            document = structs.replace(document, ended_s=time.time(), interrupted_by=by)
        seal(root, document, list(clocks), whole=over)
        return over
