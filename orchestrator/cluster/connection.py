"""A client's road to a cluster: its scheduler, its agents, and how both are asked.

Dask's errors are translated here: above it, a member that does not answer is `MemberLostError`.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import msgspec
from distributed import Client
from distributed.core import rpc

import orchestrator
from orchestrator.cluster.clock import ClockOffset, Exchange, clock_offset
from orchestrator.cluster.documents import AgentReport
from orchestrator.domain.errors import FleetError, UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from distributed.security import Security

    from orchestrator.cluster.address import Address

CONNECT_LIMIT_S: Final = 15.0
ANSWER_LIMIT_S: Final = 20.0
CLOCK_QUESTIONS: Final = 8

T = TypeVar("T")


class MemberLostError(FleetError):
    """A scheduler or an agent does not answer; it may be back later."""


@asynccontextmanager
async def _translated(who: str, limit_s: float) -> AsyncIterator[None]:
    try:
        with anyio.fail_after(limit_s):
            yield
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise MemberLostError(f"{who} went away") from None  # Dask cancels what it lost
    except (OSError, TimeoutError, RuntimeError, ValueError, KeyError) as error:
        raise MemberLostError(
            f"{who} does not answer: {str(error) or type(error).__name__}"
        ) from error


@dataclass(slots=True)
class AgentRoad:
    """Direct questions to one agent."""

    name: str
    address: str
    _peer: Any

    async def ask(self, question: str, **arguments: object) -> Any:  # noqa: ANN401 - per question
        """Ask something of `Agent`'s handlers.

        Raises:
            MemberLostError: If it does not answer.
            FleetError: What the agent says is wrong.
        """
        async with _translated(f"agent {self.name}", ANSWER_LIMIT_S):
            return await getattr(self._peer, question)(**arguments)

    async def report(self) -> AgentReport:
        """Ask it what it is and holds."""
        return msgspec.json.decode(await self.ask("fleet_report"), type=AgentReport)

    async def clock(self) -> ClockOffset:
        """Measure its clock against this host's."""
        exchanges = []
        for _ in range(CLOCK_QUESTIONS):
            asked_s = time.time()
            told_s = float(await self.ask("fleet_clock"))
            exchanges.append(Exchange(asked_s, told_s, time.time()))
        return clock_offset(exchanges)


class Connection:
    """One client of a scheduler; made by `connected`.

    Args:
        client: Of Dask, asynchronous.
    """

    def __init__(self, client: Client) -> None:
        self.client = client

    async def agents(self) -> dict[str, str]:
        """Return the addresses of the agents that are there, by name."""
        async with _translated("the scheduler", ANSWER_LIMIT_S):
            identity = await self.client.scheduler.identity()
        workers = identity["workers"]
        return {str(worker["name"]): address for address, worker in workers.items()}

    @asynccontextmanager
    async def road(self, name: str) -> AsyncIterator[AgentRoad]:
        """Give a road to an agent.

        Raises:
            MemberLostError: If it is not there.
        """
        address = (await self.agents()).get(name)
        if address is None:
            raise MemberLostError(f"agent {name} is not there")
        peer = rpc(address, connection_args=self.client.connection_args)
        try:
            yield AgentRoad(name, address, peer)
        finally:
            with anyio.move_on_after(1, shield=True):
                await peer.close_rpc()

    async def reports(self) -> list[AgentReport]:
        """Ask all agents what they hold, side by side; one that does not answer is left out."""
        return [report for _, report in await self.gathered(AgentRoad.report)]

    async def gathered(self, question: Callable[[AgentRoad], Awaitable[T]]) -> list[tuple[str, T]]:
        """Ask all agents something, side by side; return name and answer, in order of names."""
        answers: dict[str, T] = {}

        async def ask(name: str) -> None:
            try:
                async with self.road(name) as road:
                    answers[name] = await question(road)
            except MemberLostError:
                return

        async with anyio.create_task_group() as tasks:
            for name in await self.agents():
                tasks.start_soon(ask, name)
        return sorted(answers.items())


@asynccontextmanager
async def connected(address: Address, security: Security | None) -> AsyncIterator[Connection]:
    """Connect to a scheduler until the block ends.

    Raises:
        MemberLostError: If it does not answer.
    """
    async with _translated(f"the scheduler at {address}", CONNECT_LIMIT_S):
        client = await Client(
            str(address), asynchronous=True, security=security, timeout=CONNECT_LIMIT_S
        )
    try:
        yield Connection(client)
    finally:
        with anyio.move_on_after(5, shield=True):
            await client.close(timeout=2)


def refuse_other_version(report: AgentReport) -> None:
    """Refuse an agent of another version: records and plans may differ.

    Raises:
        UsageError: With both versions.
    """
    ours = orchestrator.__version__
    if report.version != ours:
        raise UsageError(
            f"agent {report.name} has fleet {report.version}, this is fleet {ours}",
            remedy="Install one version on all hosts",
        )
