"""What the agents of a cluster know of runs, asked directly, and how to end one there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.cluster.documents import FINAL, SliceState
from orchestrator.domain.errors import RunDirectoryError
from orchestrator.soak.progress import RunProgress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.cli.cluster_access import ClusterAccess
    from orchestrator.cluster.connection import AgentRoad

RUNS_PER_HOST: Final = 5


class HostPart(msgspec.Struct, frozen=True):
    """One run at one host."""

    run_id: str
    state: SliceState
    progress: RunProgress | None  # None: it has not begun
    host: str = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state.state in FINAL


async def cluster_parts(access: ClusterAccess, run_id: str | None) -> list[HostPart]:
    """Ask all agents for their newest runs; with a run id for that one alone.

    Raises:
        MemberLostError: If the scheduler does not answer.
    """

    async def ask(road: AgentRoad) -> list[HostPart]:
        content = await road.ask("fleet_runs", last=RUNS_PER_HOST)
        found = msgspec.json.decode(content, type=list[HostPart])
        return [msgspec.structs.replace(part, host=road.name) for part in found]

    async with access.connected() as connection:
        answers = await connection.gathered(ask)
    parts = [part for _, found in answers for part in found]
    newest = run_id or max((part.run_id for part in parts), default=None)
    return [part for part in parts if part.run_id == newest]


def part_lines(parts: Sequence[HostPart]) -> Iterator[str]:
    """Yield what a person sees: a line per host, one per phone below it."""
    from orchestrator.cli.status import phone_line

    for part in parts:
        reason = f"  {part.state.reason}" if part.state.reason else ""
        yield f"{part.host:<12} run {part.run_id}  {part.state.state}{reason}"
        for phone in part.progress.phones if part.progress else ():
            yield f"  {phone_line(phone)}"


async def stop_in_cluster(access: ClusterAccess, run_id: str) -> list[str]:
    """Have every agent end a run in order; return the hosts that had it.

    Raises:
        RunDirectoryError: If none has.
    """

    async def ask(road: AgentRoad) -> bool:
        return bool(await road.ask("fleet_stop", run_id=run_id))

    async with access.connected() as connection:
        answers = await connection.gathered(ask)
    hosts = [name for name, had_it in answers if had_it]
    if not hosts:
        raise RunDirectoryError(
            f"no host of the cluster carries out run {run_id}",
            remedy="See `fleet status --cluster`",
        )
    return hosts
