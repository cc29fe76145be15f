"""The keeper process: `python -m orchestrator.device.pmd3.keeper --udid ... --root ...`.

Its first line on stdout says whether it started; then it serves the socket in its folder.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from anyio.abc import SocketListener

from orchestrator.device.keeper.parent import die_with, stdin_closed
from orchestrator.device.keeper.place import (
    KeeperHeldError,
    KeeperPlace,
    KeeperRecord,
    PlaceError,
    claim,
    clear,
    place_of,
    write_record,
)
from orchestrator.device.keeper.server import KeeperServer
from orchestrator.device.keeper.start import KeeperOptions, NotStarted, Started
from orchestrator.device.pmd3.developer import DtxSession

if TYPE_CHECKING:
    from orchestrator.device.events import SessionEvent

_BACKLOG: Final = 8


class Claimed:
    """A place that is ours, and its listening socket; made before a fork, used after it."""

    def __init__(self, options: KeeperOptions) -> None:
        """Take the phone's place.

        Raises:
            KeeperHeldError: If a keeper lives there.
            PlaceError: If the folder cannot be used.
        """
        self.place: KeeperPlace = place_of(Path(options.root), options.udid, options.address)
        self._lock = claim(self.place)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(self.place.socket))
        self.listener.listen(_BACKLOG)

    def let_go(self) -> None:
        """Close this process's copies; a forked keeper has its own."""
        os.close(self._lock)
        self.listener.close()


def claimed_or_reason(options: KeeperOptions) -> Claimed | NotStarted:
    """Take the phone's place, or say why not."""
    try:
        return Claimed(options)
    except KeeperHeldError as error:
        return NotStarted(f"the phone has a developer session: {error}", held=True)
    except (PlaceError, OSError) as error:
        return NotStarted(f"the keeper's folder cannot be used: {error}")


def keep(options: KeeperOptions, claimed: Claimed) -> None:
    """Keep the session until it is closed or its lease is over."""
    if options.address != "default":
        os.environ["USBMUXD_SOCKET_ADDRESS"] = options.address
    try:
        anyio.run(_keep, options, claimed)
    finally:
        clear(claimed.place)


async def _keep(options: KeeperOptions, claimed: Claimed) -> None:
    record = KeeperRecord(
        pid=os.getpid(),
        socket=str(claimed.place.socket),
        udid=options.udid,
        alias=options.alias,
        address=options.address,
    )

    def note_app(bundle_id: str | None, app_pid: int | None) -> None:
        changed = msgspec.structs.replace(record, bundle_id=bundle_id, app_pid=app_pid)
        write_record(claimed.place, changed)

    def report(event: SessionEvent) -> None:
        server.report(event)

    async with anyio.create_task_group() as tasks:
        session = DtxSession(options.alias, options.udid, options.tunneld, emit=report, tasks=tasks)
        server = KeeperServer(options.alias, record.pid, session, options.lease_s, on_app=note_app)
        write_record(claimed.place, record)
        tasks.start_soon(_end_on_signal, server)
        if options.die_with_parent:
            tasks.start_soon(_end_with_parent, server)
        await server.serve(await SocketListener.from_socket(claimed.listener))
        tasks.cancel_scope.cancel()


async def _end_on_signal(server: KeeperServer) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            server.end()


async def _end_with_parent(server: KeeperServer) -> None:
    await stdin_closed()
    server.end()


def parse(words: list[str]) -> tuple[KeeperOptions, int | None]:
    """Return the options of a command line, and the pid to die with."""
    parser = argparse.ArgumentParser(prog="keeper", description=__doc__)
    for name in ("--udid", "--alias", "--address", "--root"):
        parser.add_argument(name, required=True)
    parser.add_argument("--lease-s", type=float, required=True)
    parser.add_argument("--tunneld")
    parser.add_argument("--die-with-parent", type=int, metavar="PID")
    given = parser.parse_args(words)
    options = KeeperOptions(
        udid=given.udid,
        alias=given.alias,
        address=given.address,
        root=given.root,
        lease_s=given.lease_s,
        tunneld=given.tunneld,
        die_with_parent=given.die_with_parent is not None,
    )
    return options, given.die_with_parent


def main() -> int:
    """Run one keeper, started afresh."""
    options, parent_pid = parse(sys.argv[1:])
    if parent_pid is not None:
        die_with(parent_pid)
    claimed = claimed_or_reason(options)
    answer = claimed if isinstance(claimed, NotStarted) else Started(os.getpid())
    sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
    sys.stdout.flush()
    if isinstance(claimed, NotStarted):
        return 1
    keep(options, claimed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
