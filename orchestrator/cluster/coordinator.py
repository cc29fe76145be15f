"""Carries a plan out on the hosts of a cluster, and brings what they found here.

One task per host, each with its own catch boundary: a host that is away costs its own phones time,
and no other host anything. Nothing here is the only copy of anything.
"""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec
from msgspec import structs

from orchestrator.cluster.agent import RESOURCE
from orchestrator.cluster.connection import MemberLostError, connected, refuse_other_version
from orchestrator.cluster.documents import (
    FINAL,
    REFUSED,
    UNKNOWN,
    WAITING,
    FileState,
    SliceState,
)
from orchestrator.cluster.live import TOPIC, LiveSummary
from orchestrator.cluster.mirror import Mirror
from orchestrator.cluster.run_files import CHUNK_BYTES
from orchestrator.cluster.task import attend
from orchestrator.domain.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from distributed.security import Security

    from orchestrator.cluster.address import Address
    from orchestrator.cluster.clock import ClockOffset
    from orchestrator.cluster.connection import AgentRoad, Connection
    from orchestrator.cluster.documents import Slice
    from orchestrator.soak.run_directory import RunRecorder

MIRROR_PERIOD_S: Final = 2.0
AGAIN_S: Final = 1.0
FIRST_LIMIT_S: Final = 30.0


@dataclass(slots=True)
class HostRun:
    """One host's part while the run goes."""

    order: Slice
    mirror: Mirror
    state: SliceState = field(default_factory=lambda: SliceState(state=UNKNOWN))
    clock: ClockOffset | None = None
    lost_since_s: float | None = None  # monotonic
    complete: bool = False  # everything is here, and verified
    told_to_stop: bool = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of this host."""
        return self.complete or self.state.state == REFUSED


@dataclass(frozen=True, slots=True)
class AgentFiles:
    """The run directory of one host, for the mirror."""

    road: AgentRoad
    run_id: str

    async def listing(self) -> list[FileState]:
        """Return its files as they are now."""
        content = await self.road.ask("fleet_listing", run_id=self.run_id)
        return msgspec.json.decode(content, type=list[FileState])

    async def read(self, name: str, offset: int) -> bytes:
        """Return up to a chunk of a file."""
        return bytes(
            await self.road.ask("fleet_read", run_id=self.run_id, name=name, offset=offset)
        )


@dataclass(slots=True)
class Coordinator:
    """One run over all its hosts."""

    address: Address
    security: Security | None
    recorder: RunRecorder
    orders: Mapping[str, Slice]
    app: Path | None  # None where it is not here any more: hosts that began have it
    return_limit_s: float  # how long a host may be away
    stop: anyio.Event
    tell: Callable[[str], None]
    hosts: dict[str, HostRun] = field(default_factory=dict)
    _connection: Connection | None = None
    _first_look: anyio.Event = field(default_factory=anyio.Event)  # it answered, or did not
    _phases: dict[str, str] = field(default_factory=dict)

    async def run(self) -> None:
        """Return when every host is over and mirrored, or was away for too long."""
        root = self.recorder.paths.root
        self.hosts = {
            host: HostRun(order, Mirror(root, host)) for host, order in self.orders.items()
        }
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._stay_connected)
            with anyio.move_on_after(FIRST_LIMIT_S):
                await self._first_look.wait()
            async with anyio.create_task_group() as hosts:
                for host in self.hosts.values():
                    hosts.start_soon(self._carry_out, host)
            tasks.cancel_scope.cancel()

    async def _stay_connected(self) -> None:
        while True:
            try:
                async with connected(self.address, self.security) as connection:
                    connection.client.subscribe_topic(TOPIC, self._live)
                    self._connection = connection
                    self._first_look.set()
                    while connection.client.status == "running":  # noqa: ASYNC110
                        await anyio.sleep(AGAIN_S / 2)
            except MemberLostError:
                pass
            finally:
                self._connection = None
                self._first_look.set()
            await anyio.sleep(AGAIN_S)

    async def _carry_out(self, host: HostRun) -> None:
        while not host.is_over:
            try:
                async with self._road(host) as (connection, road):
                    await self._accompany(host, connection, road)
            except MemberLostError as error:
                if self._is_given_up(host, error):
                    return
                await anyio.sleep(AGAIN_S)
            except FleetError as error:  # of this host alone
                self._refused(host, SliceState(state=REFUSED, reason=str(error)))

    @asynccontextmanager
    async def _road(self, host: HostRun) -> AsyncIterator[tuple[Connection, AgentRoad]]:
        connection = self._connection
        if connection is None:
            raise MemberLostError("no connection to the scheduler")
        async with connection.road(host.order.host) as road:
            yield connection, road

    async def _accompany(self, host: HostRun, connection: Connection, road: AgentRoad) -> None:
        """Stay with a host until its part is over and here."""
        refuse_other_version(await road.report())
        host.clock = await road.clock()
        self._returned(host)
        await self._send_app(host, road)
        future = await self._submitted(host, connection)
        files = AgentFiles(road, host.order.run_id)
        while host.state.state not in FINAL:
            if self.stop.is_set() and not host.told_to_stop:
                host.told_to_stop = True
                await road.ask("fleet_stop", run_id=host.order.run_id)
            await host.mirror.follow(files)
            await self._wait(future)
            self._note_state(host, await self._asked(host, road, future))
        if host.state.state == REFUSED:
            self._refused(host, host.state)
            return
        await host.mirror.complete(files)
        host.complete = True
        self.recorder.event(
            "mirrored", agent=host.order.host, received_bytes=host.mirror.received_bytes
        )

    async def _asked(self, host: HostRun, road: AgentRoad, future: Any) -> SliceState:  # noqa: ANN401
        if future.status in ("cancelled", "lost", "error"):
            raise MemberLostError(f"the scheduler lost the work of {host.order.host}")
        content = await road.ask("fleet_state", run_id=host.order.run_id)
        state = msgspec.json.decode(content, type=SliceState)
        if state.state == UNKNOWN and host.told_to_stop:
            return SliceState(state=REFUSED, reason="stopped before it began")
        return state

    async def _wait(self, future: Any) -> None:  # noqa: ANN401 - Dask's future
        """Wait until the task is over, or it is time to mirror again."""
        ends_s = time.monotonic() + MIRROR_PERIOD_S
        stopped = self.stop.is_set()
        while future.status == "pending" and time.monotonic() < ends_s:
            if self.stop.is_set() is not stopped:
                return
            await anyio.sleep(0.1)

    async def _submitted(self, host: HostRun, connection: Connection) -> Any:  # noqa: ANN401
        """Have the scheduler send the order to the one host that holds its phones."""
        order = host.order
        if order.until_s is not None and host.clock is not None:
            order = structs.replace(order, until_s=order.until_s + host.clock.offset_s)
        return connection.client.submit(
            attend,
            msgspec.json.encode(order).decode(),
            key=f"fleet-{order.run_id}-{order.host}",
            resources={f"{RESOURCE}{phone.udid}": 1 for phone in order.plan.phones},
            pure=False,
        )

    async def _send_app(self, host: HostRun, road: AgentRoad) -> None:
        """Send the app where it is not yet, from where the last attempt broke off."""
        sha256 = host.order.app_sha256
        offset = int(await road.ask("fleet_app_size", sha256=sha256))
        if self.app is None or not self.app.exists():
            return
        content = await anyio.Path(self.app).read_bytes()
        while 0 <= offset < len(content) or offset == len(content):
            chunk = content[offset : offset + CHUNK_BYTES]
            last = offset + len(chunk) >= len(content)
            offset = int(
                await road.ask(
                    "fleet_app_chunk", sha256=sha256, offset=offset, data=chunk, last=last
                )
            )

    def _note_state(self, host: HostRun, state: SliceState) -> None:
        if state.state == WAITING and state != host.state:
            self.tell(f"{host.order.host} waits: {state.reason}")
            self.recorder.event("agent_waits", agent=host.order.host, reason=state.reason)
        host.state = state

    def _refused(self, host: HostRun, state: SliceState) -> None:
        host.state = state
        self.tell(f"{host.order.host} takes no part: {state.reason}")
        self.recorder.event("agent_refused", agent=host.order.host, reason=state.reason)

    def _is_given_up(self, host: HostRun, error: MemberLostError) -> bool:
        now_s = time.monotonic()
        if host.lost_since_s is None:
            host.lost_since_s = now_s
            self.tell(f"{host.order.host}: {error}; its phones go on without us")
            self.recorder.event("agent_lost", agent=host.order.host, reason=str(error))
        if now_s - host.lost_since_s < self.return_limit_s:
            return False
        self.recorder.event("agent_given_up", agent=host.order.host)
        return True

    def _returned(self, host: HostRun) -> None:
        clock = host.clock
        if clock is not None:
            self.recorder.event(
                "clock",
                agent=host.order.host,
                offset_s=clock.offset_s,
                uncertainty_s=clock.uncertainty_s,
            )
        if host.lost_since_s is not None:
            away_s = time.monotonic() - host.lost_since_s
            host.lost_since_s = None
            self.tell(f"{host.order.host} is back after {away_s:.0f} s")
            self.recorder.event("agent_back", agent=host.order.host, seconds=away_s)

    def _live(self, event: tuple[float, object]) -> None:
        """Take a live summary: phases go to the events, for `fleet status` and `watch` here."""
        summary = LiveSummary.of_json(event[1])
        if summary is None or summary.run_id != self.recorder.document.run_id:
            return
        for phone in summary.phones:
            if self._phases.get(phone.udid) != phone.phase:
                self._phases[phone.udid] = phone.phase
                self.recorder.event(
                    "phase",
                    udid=phone.udid,
                    attempt=phone.attempt,
                    name=phone.phase,
                    host=summary.host,  # replaced by the host's own event at the end
                )
