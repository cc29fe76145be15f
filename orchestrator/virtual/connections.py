"""The live connections of one phone or server, and loopback listeners that end with them."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import resource
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.wire import PEER_LOST, READER_LIMIT_BYTES, SocketStream

if TYPE_CHECKING:
    from orchestrator.virtual.wire import Service, Stream

_log: Final = logging.getLogger(__name__)

LOOPBACK: Final = "127.0.0.1"
MAX_OPEN_FILES: Final = 10_240  # the most that macOS lets a process have by default


def allow_many_sockets() -> None:
    """Raise this process's limit of open files: a phone takes some 20 of them.

    The soft limit is 1024 on Linux and 256 on macOS, where the hard one is no number.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Connections:
    """Streams that are being served. Dropping them is what unplugging the cable does."""

    def __init__(self) -> None:
        self._tasks: dict[Stream, asyncio.Task[None] | None] = {}
        self._names: dict[Stream, str] = {}

    async def run(self, service: Service, stream: Stream, name: str = "") -> None:
        """Serve one stream until it ends. The one catch boundary of a connection.

        A peer that leaves is ordinary; any other error is a fault of the service, is logged, and
        ends this connection only.
        """
        self._tasks[stream], self._names[stream] = asyncio.current_task(), name
        try:
            await service(stream)
        except* PEER_LOST as lost:
            _log.debug("connection ended: %s", lost.exceptions)
        except* Exception:  # noqa: BLE001 - it is logged; the next connection must be served
            _log.exception("a service failed")
        finally:
            self._tasks.pop(stream, None)
            self._names.pop(stream, None)
            stream.writer.close()

    def drop(self, name: str | None = None) -> None:
        """End every stream at once, or those of one name."""
        for stream in list(self._tasks):
            if name is None or self._names[stream] == name:
                stream.writer.abort()

    async def close(self) -> None:
        """End every stream and wait for the tasks that serve them."""
        self.drop()
        own = asyncio.current_task()
        tasks = [task for task in self._tasks.values() if task is not None and task is not own]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Listener:
    """A TCP server on 127.0.0.1 whose connections end with it."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._connections = Connections()
        self._server: asyncio.Server | None = None

    async def open(self, port: int = 0) -> int:
        """Listen and return the port; 0 takes any free one."""
        self._server = await asyncio.start_server(
            self._accept, LOOPBACK, port, limit=READER_LIMIT_BYTES
        )
        if not self._server.sockets:
            # asyncio takes a refused socket() for a missing address family and goes on without.
            raise OSError(errno.EMFILE, "no socket could be made; too many files are open")
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        """Stop listening and end every connection."""
        if self._server is not None:
            self._server.close()
        await self._connections.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The task ends here either way; asyncio 3.11 would report a cancelled one as an error.
        with contextlib.suppress(asyncio.CancelledError):
            await self._connections.run(self._service, SocketStream(reader, writer))
