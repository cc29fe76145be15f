"""A virtual phone without sockets, whose services are fed bytes in memory."""

from __future__ import annotations

import asyncio
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.virtual.events import EventLog
from orchestrator.virtual.identity import identity_of, model_of
from orchestrator.virtual.mux import PairRecords, Usbmuxd
from orchestrator.virtual.phone import PhonePlan, VirtualPhone
from orchestrator.virtual.pki import Pki
from orchestrator.virtual.wire import PEER_LOST, Stream
from tests.fuzz.driver import HangError

if TYPE_CHECKING:
    from orchestrator.virtual.wire import Service

WAIT_S = 0.5  # a service may wait for its client: the input has ended, so it is cut off
CANARY = "canary"


class _Sink:
    """A writer that keeps nothing."""

    def write(self, data: bytes) -> None:
        """Take bytes."""

    async def drain(self) -> None:
        """Be ready at once."""

    def close(self) -> None:
        """End."""

    def abort(self) -> None:
        """End."""


class Bench:
    """One phone in an event loop of its own; a file beside its folder must stay alone there."""

    def __init__(self, os: str = "18.6") -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="fuzz-")
        self.root = Path(self._temporary.name)
        (self.root / CANARY).write_text(CANARY)
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._note)
        self._faults: list[str] = []
        self._pki = Pki(self.root / "pki")
        self.phone = self._loop.run_until_complete(self._make(os))
        self.mux = Usbmuxd(self._pki, PairRecords(self.root / "lockdown"))
        self.mux.attach(self.phone)
        (self.phone._media / "way-out").symlink_to(self.root)  # as an app could make one
        self._outside = self._names()

    async def _make(self, os: str) -> VirtualPhone:
        identity = identity_of(model_of("iPhone 16"), os, 0, 0)
        ports = self.root / "ports"
        plan = PhonePlan(0, identity, self.root / "phone", ports, 32, False, 0.0)
        return VirtualPhone(plan, self._pki, EventLog(), lambda _phone, _request: None)

    def feed(self, service: Service, content: bytes) -> None:
        """Let a service read a content to its end.

        Raises:
            Exception: What the service raised, but for what the loss of a peer raises.
        """
        try:
            self._run(service, content)
        except* PEER_LOST:
            pass
        if self._faults:
            fault, self._faults = self._faults[0], []
            raise RuntimeError(fault)

    def _run(self, service: Service, content: bytes) -> None:
        try:
            self._loop.run_until_complete(_serve(service, content))
        except HangError:
            # It came from a signal, out of the middle of the loop: what it left must end.
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._faults.clear()
            raise

    def check_outside(self) -> None:
        """Raise if something was made or changed outside of the phone's folder."""
        if self._names() != self._outside or (self.root / CANARY).read_text() != CANARY:
            raise RuntimeError("a file was touched outside of the phone")

    def _names(self) -> list[str]:
        return sorted(path.name for path in self.root.iterdir())

    def _note(self, _loop: object, context: dict[str, object]) -> None:
        self._faults.append(str(context.get("exception") or context.get("message")))


async def _serve(service: Service, content: bytes) -> None:
    reader = asyncio.StreamReader(limit=1 << 20)
    reader.feed_data(content)
    reader.feed_eof()
    try:
        async with asyncio.timeout(WAIT_S):
            await service(Stream(reader, _Sink()))
    except TimeoutError:
        return


@cache
def bench() -> Bench:
    """Return the phone that all targets share; it is made when the first input is fed."""
    return Bench()
