"""Keeps the processes of slices alive: starts them, resumes them, waits for room on the disk.

The process is the ordinary orchestrator in a session of its own, so that it outlives the agent,
the scheduler and the coordinator. One that dies is resumed, never started over.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.cluster.documents import FINAL, RUNNING, UNKNOWN, WAITING, SliceState
from orchestrator.cluster.slice_folder import SliceFolder, slice_folders
from orchestrator.domain.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from anyio.abc import TaskGroup

    from orchestrator.cluster.documents import Slice

POLL_S: Final = 0.5
START_LIMIT_S: Final = 60.0  # until the process holds its slice
PATIENCE_S: Final = (1.0, 2.0, 5.0, 15.0, 60.0)  # before it is resumed again; the last repeats
MIN_FREE_BYTES: Final = 256 << 20


@dataclass(slots=True)
class Supervisor:
    """All slices of one agent."""

    agent: Path
    tasks: TaskGroup
    localised: Callable[[Slice], Slice]  # with what only this host knows: its usbmuxds
    min_free_bytes: int = MIN_FREE_BYTES
    _states: dict[str, SliceState] = field(default_factory=dict)
    _stopped: set[str] = field(default_factory=set)

    def take_up_all(self) -> None:
        """Go on with everything that was not over when the last agent of this host ended."""
        for folder in slice_folders(self.agent):
            state = folder.state()
            if state is None or state.state == RUNNING:
                self._begin(folder)

    def accept(self, order: Slice) -> None:
        """Carry a slice out; one that is known is gone on with, whatever happened to it."""
        folder = SliceFolder(self.agent, order.run_id)
        if order.run_id in self._states:
            return
        try:
            folder.order()
        except FleetError:
            folder.keep(self.localised(order))
        self._begin(folder)

    def unfinished(self) -> list[str]:
        """Return the runs that are not over."""
        return [run_id for run_id, state in self._states.items() if state.state not in FINAL]

    def state(self, run_id: str) -> SliceState:
        """Return how a slice is."""
        known = self._states.get(run_id)
        if known is not None:
            return known
        return SliceFolder(self.agent, run_id).state() or SliceState(state=UNKNOWN)

    def stop(self, run_id: str) -> bool:
        """Have a slice end in order; return whether there is one that is not over."""
        folder = SliceFolder(self.agent, run_id)
        self._stopped.add(run_id)
        pid = folder.holder()
        if pid:
            os.kill(pid, signal.SIGTERM)
        return self.state(run_id).state not in FINAL | {UNKNOWN}

    def _begin(self, folder: SliceFolder) -> None:
        self._states[folder.run_id] = SliceState(state=RUNNING)
        self.tasks.start_soon(self._supervise, folder)

    async def _supervise(self, folder: SliceFolder) -> None:
        starts = 0
        while True:
            state = folder.state()
            if state is None and (state := self._short_of_room(folder)) is None:
                state = await self._started(folder, starts)
                starts += 1
            self._states[folder.run_id] = state
            if state.state in FINAL:
                return
            await anyio.sleep(POLL_S)

    def _short_of_room(self, folder: SliceFolder) -> SliceState | None:
        free_bytes = shutil.disk_usage(folder.root).free
        if free_bytes >= self.min_free_bytes:
            return None
        needed = f"{self.min_free_bytes >> 20} are needed"
        reason = f"disk full: {free_bytes >> 20} MiB are free, {needed}"
        return SliceState(state=WAITING, reason=reason)

    async def _started(self, folder: SliceFolder, starts: int) -> SliceState:
        """Start or resume the process; return how the slice is then."""
        if starts:
            patience_s = PATIENCE_S[min(starts, len(PATIENCE_S)) - 1]
            reason = folder.last_words() or "its process died"
            self._states[folder.run_id] = SliceState(state=WAITING, reason=reason)
            await anyio.sleep(patience_s)
        folder.forget_ending()
        process = self._spawn(folder)
        with anyio.move_on_after(START_LIMIT_S):
            while process.poll() is None and folder.holder() is None:  # noqa: ASYNC110
                await anyio.sleep(POLL_S / 5)
        self.tasks.start_soon(_reap, process)
        return folder.state() or SliceState(state=RUNNING)

    def _spawn(self, folder: SliceFolder) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "orchestrator.cli.main", "slice", str(folder.root)]
        if folder.run_id in self._stopped:
            command.append("--stop")
        with folder.log.open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder.root,
                start_new_session=True,
            )


async def _reap(process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:  # noqa: ASYNC110 - a process has no event here
        await anyio.sleep(POLL_S)
