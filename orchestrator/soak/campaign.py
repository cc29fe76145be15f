"""All sessions of a run, side by side, under one scope that a signal ends in order."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.domain.errors import FleetError
from orchestrator.soak.attempts import soak_phone
from orchestrator.soak.host_load import PERIOD_S, host_load
from orchestrator.soak.incidents import Loss, hub_incidents
from orchestrator.soak.ledger import QuarantinePolicy
from orchestrator.soak.session_state import SessionJournal
from orchestrator.soak.signals import stop_at
from orchestrator.soak.window_end import UNTIL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path
    from signal import Signals

    from orchestrator.device.link import PhoneLink
    from orchestrator.runlog.documents import PlannedPhone
    from orchestrator.soak.attempts import PhoneResult
    from orchestrator.soak.ledger import Ledger
    from orchestrator.soak.run_directory import RunRecorder
    from orchestrator.soak.session import SessionOrder

WAKE_S: Final = 60.0


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
    signals: AsyncIterator[Signals] | None = None  # that end the run; None: nobody does
    until_s: float | None = None  # wall clock: then the apps are stopped
    ledger: Ledger | None = None  # told how sessions ended
    quarantine: QuarantinePolicy = field(default_factory=QuarantinePolicy)
    _results: dict[str, PhoneResult] = field(default_factory=dict)

    async def run(self) -> None:
        """Soak every phone; signals stop the apps and still collect everything."""
        async with anyio.create_task_group() as tasks:
            if self.signals is not None:
                tasks.start_soon(stop_at, self.signals, self.stop, self._note_signal)
            tasks.start_soon(self._sample_host)
            if self.until_s is not None:
                tasks.start_soon(self._close_window, self.until_s)
            async with anyio.create_task_group() as sessions:
                for order in self.orders:
                    sessions.start_soon(self._soak, order)
            tasks.cancel_scope.cancel()
        self._note_incidents()
        self._note_sessions()
        for file in self.kept:
            shutil.copyfile(file, self.recorder.paths.root / file.name)
        self.recorder.finish(self.interrupted_by)

    async def _soak(self, order: SessionOrder) -> None:
        journal = self.journal_of(order.phone)
        link = self.link_to(order.phone)
        result = await soak_phone(order, link, self.recorder, self.stop, journal)
        if result is not None:
            self._results[order.phone.udid] = result

    async def _close_window(self, until_s: float) -> None:
        # Looked at anew every minute at the latest: a laptop may have slept meanwhile.
        while (left_s := until_s - time.time()) > 0:  # noqa: ASYNC110 - a clock has no event
            await anyio.sleep(min(left_s, WAKE_S))
        if not self.stop.is_set():
            self._note_signal(UNTIL)
            self.stop.set()

    async def _sample_host(self) -> None:
        while True:
            self.recorder.remark("host", host_load())
            await anyio.sleep(PERIOD_S)

    def _note_incidents(self) -> None:
        for group in self._incidents():
            names = ", ".join(loss.alias for loss in group)
            self.recorder.event("hub_incident", phones=names, count=len(group))

    def _incidents(self) -> list[list[Loss]]:
        aliases = {order.phone.udid: order.phone.alias for order in self.orders}
        return hub_incidents(
            Loss(udid, aliases[udid], result.findings.lost_at_s)
            for udid, result in self._results.items()
            if result.findings.lost_at_s is not None
        )

    def _note_sessions(self) -> None:
        """Tell the ledger how sessions ended; a lost hub says nothing of its phones."""
        if self.ledger is None or self.stop.is_set():
            return
        on_hubs = {loss.udid for group in self._incidents() for loss in group}
        try:
            for order in self.orders:
                result = self._results.get(order.phone.udid)
                if result is not None and order.phone.udid not in on_hubs:
                    self._note_session(self.ledger, order.phone, result)
        except (FleetError, OSError) as error:  # the run is whole without it
            self.recorder.event("ledger_unwritten", reason=str(error))

    def _note_session(self, ledger: Ledger, phone: PlannedPhone, result: PhoneResult) -> None:
        facts = result.findings.facts
        quarantine = ledger.session_ended(
            phone.udid,
            phone.alias,
            facts.build if facts else None,
            result.lab_error,
            self.quarantine,
            time.time(),
        )
        if quarantine is not None:
            self.recorder.event("quarantined", udid=phone.udid, reason=quarantine.reason)

    def _note_signal(self, name: str) -> None:
        self.interrupted_by = name
        self.recorder.event("interrupted", by=name)
