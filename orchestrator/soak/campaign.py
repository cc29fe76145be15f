"""All sessions of a run, side by side, under one scope that a signal ends in order."""

from __future__ import annotations

import shutil
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from orchestrator.runlog.files import write_document
from orchestrator.runlog.merge import AttemptMerge, MergeCounts
from orchestrator.soak.session import PhoneSession
from orchestrator.soak.session_state import SessionJournal, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from orchestrator.device.link import PhoneLink
    from orchestrator.runlog.documents import PlannedPhone
    from orchestrator.runlog.layout import AttemptPaths
    from orchestrator.soak.run_directory import RunRecorder
    from orchestrator.soak.session import SessionOrder


@dataclass(slots=True)
class Campaign:
    """One run over all its phones."""

    orders: Sequence[SessionOrder]
    link_to: Callable[[PlannedPhone], PhoneLink]
    recorder: RunRecorder
    journal_of: Callable[[PlannedPhone], SessionJournal] = field(default=lambda _: SessionJournal())
    kept: Sequence[Path] = ()  # files of the run's work folder that belong to its evidence
    stop: anyio.Event = field(default_factory=anyio.Event)
    interrupted_by: str | None = None

    async def run(self) -> None:
        """Soak every phone; SIGINT and SIGTERM stop the apps and still collect everything."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_signals)
            async with anyio.create_task_group() as sessions:
                for order in self.orders:
                    sessions.start_soon(self._soak, order)
            tasks.cancel_scope.cancel()
        for file in self.kept:
            shutil.copyfile(file, self.recorder.paths.root / file.name)
        self.recorder.finish(self.interrupted_by)

    async def _soak(self, order: SessionOrder) -> None:
        journal = self.journal_of(order.phone)
        await soak_phone(order, self.link_to(order.phone), self.recorder, self.stop, journal)

    async def _watch_signals(self) -> None:
        await stop_on_signal(self.stop, self._note_signal)

    def _note_signal(self, name: str) -> None:
        self.interrupted_by = name
        self.recorder.event("interrupted", by=name)


async def soak_phone(
    order: SessionOrder,
    link: PhoneLink,
    recorder: RunRecorder,
    stop: anyio.Event,
    journal: SessionJournal | None = None,
) -> None:
    """Soak one phone of a run and write all that is kept of it.

    Args:
        order: What is done.
        link: The phone.
        recorder: Of the run.
        stop: Ends the session early, in order.
        journal: Lets another process go on with the session; by default nobody can.
    """
    journal = journal or SessionJournal()
    paths = recorder.paths.device(order.phone.directory)
    if journal.state.stage is Stage.DONE:
        return
    number = journal.state.attempt
    attempt = paths.attempt(number)
    findings = await PhoneSession(order, link, attempt, recorder, stop, journal).run()
    counts = await anyio.to_thread.run_sync(write_telemetry, attempt, paths.telemetry)
    write_document(paths.device, findings.device_document(order.phone))
    write_document(attempt.evidence, findings.evidence_document(number, counts))
    journal.save(Stage.DONE)


async def stop_on_signal(stop: anyio.Event, tell: Callable[[str], None]) -> None:
    """Set `stop` at the first SIGINT or SIGTERM, and tell its name; never returns by itself."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as received:
        async for number in received:
            if not stop.is_set():
                tell(signal.Signals(number).name)
                stop.set()


def write_telemetry(attempt: AttemptPaths, target: Path) -> MergeCounts:
    """Merge what an attempt's launches left into `telemetry.ndjson`, atomically."""
    merge = AttemptMerge(attempt)
    temporary = target.with_name(f".{target.name}.tmp")
    with temporary.open("wb") as file:
        file.writelines(merge)
    temporary.replace(target)
    return merge.counts
