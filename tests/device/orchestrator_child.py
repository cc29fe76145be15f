"""An orchestrator that opens a session, launches the small app, and is then killed by the test.

`python -m tests.device.orchestrator_child ADDRESS UDID ROOT die|stay`; prints keeper and app pid.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from orchestrator.device.keeper.broker import KeeperBroker
from orchestrator.device.keeper.start import KeeperStarter
from orchestrator.domain.deadline import Deadline
from tests.device.farm import BUNDLE_ID
from tests.device.phones import phone


async def main(address: str, udid: str, root: Path, *, die_with_parent: bool) -> None:
    async with KeeperStarter() as starter:
        broker = KeeperBroker(starter, root=root, die_with_parent=die_with_parent)
        one = phone("child", udid=udid, virtual=True)
        session = await broker.open(one, address, deadline=Deadline.after(20))
        app_pid = await session.launch(BUNDLE_ID, {}, deadline=Deadline.after(20))
        sys.stdout.write(f"{session.keeper_pid} {app_pid}\n")
        sys.stdout.flush()
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(
        lambda: main(
            sys.argv[1], sys.argv[2], Path(sys.argv[3]), die_with_parent=sys.argv[4] == "die"
        )
    )
