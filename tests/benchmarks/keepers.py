"""What keepers cost (Linux).

Virtual phones in a child process; one keeper per phone, all at once, each with a tunnel of its own,
an app launched through it and its footprint observed. Prints each keeper's private memory.
"""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from orchestrator.device.discovery import UsbmuxSource, discover
from orchestrator.device.events import FootprintObserved
from orchestrator.device.keeper.broker import KeeperBroker
from orchestrator.device.keeper.start import KeeperStarter
from orchestrator.device.pmd3.browser import UsbmuxBrowser
from orchestrator.device.pmd3.link import Pmd3Link
from orchestrator.domain.deadline import Deadline
from tests.device.farm import BUNDLE_ID, farm_process, make_ipa

if TYPE_CHECKING:
    from orchestrator.domain.phone import Phone

LIMIT_S = 120.0  # of one step with all phones at once, on a loaded machine
_KIB_PER_MIB = 1024


@dataclass(frozen=True, slots=True)
class KeeperCost:
    """One keeper while its session is open and an app runs."""

    alias: str
    private_mib: float
    shared_mib: float  # with the keeper host and its siblings


def memory_of(pid: int) -> tuple[float, float]:
    """Return the private and the shared resident memory of a process in MiB."""
    private, shared = 0, 0
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in ("Private_Clean", "Private_Dirty"):
            private += int(rest.split()[0])
        if name in ("Shared_Clean", "Shared_Dirty"):
            shared += int(rest.split()[0])
    return private / _KIB_PER_MIB, shared / _KIB_PER_MIB


async def measure(folder: Path, count: int) -> list[KeeperCost]:
    """Open a session on each of so many phones at once and measure its keeper."""
    ipa = make_ipa(folder / "tiny.ipa")
    with farm_process(folder / "farm", count) as farm:
        os.environ["USBMUXD_SOCKET_ADDRESS"] = farm.address
        source = UsbmuxSource("farm", farm.address)
        found = await discover([source], UsbmuxBrowser(), deadline=Deadline.after(LIMIT_S))
        costs: list[KeeperCost] = []
        all_open, measured = anyio.Event(), anyio.Event()
        ready: list[str] = []

        async def keep(phone: Phone, broker: KeeperBroker) -> None:
            link = Pmd3Link(phone, farm.address, broker)
            await link.install(ipa, BUNDLE_ID, deadline=Deadline.after(LIMIT_S))
            session = await link.developer(deadline=Deadline.after(LIMIT_S))
            try:
                pid = await session.launch(BUNDLE_ID, {}, deadline=Deadline.after(LIMIT_S))
                await session.observe(pid, 100, deadline=Deadline.after(LIMIT_S))
                async for event in session.events():
                    if isinstance(event, FootprintObserved) and event.pid == pid:
                        break
                ready.append(phone.alias)
                if len(ready) == count:
                    all_open.set()
                await all_open.wait()
                if session.keeper_pid is not None:
                    costs.append(KeeperCost(phone.alias, *memory_of(session.keeper_pid)))
                if len(costs) == count:
                    measured.set()
                await measured.wait()
            finally:
                await session.aclose()

        async with AsyncExitStack() as stack:
            starter = await stack.enter_async_context(KeeperStarter())
            broker = KeeperBroker(starter, root=folder / "k", die_with_parent=True)
            with anyio.fail_after(LIMIT_S):
                async with anyio.create_task_group() as tasks:
                    for phone in found.phones:
                        tasks.start_soon(keep, phone, broker)
    return sorted(costs, key=lambda cost: cost.alias)
