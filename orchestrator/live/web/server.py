"""Serves a run until a signal; uvicorn alone knows how."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

import uvicorn

from orchestrator.domain.errors import UsageError
from orchestrator.live.web.app import live_app

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.live.web.source import RunSource

LOOPBACK: Final = "127.0.0.1"
_END_LIMIT_S: Final = 2  # for streams that are open


def listening(host: str | None, port: int) -> socket.socket:
    """Return a socket that listens; loopback where no host is given.

    Raises:
        UsageError: If the address cannot be had.
    """
    address = host or LOOPBACK
    try:
        family, _, _, _, where = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(where[:2], family=family)
    except OSError as error:
        raise UsageError(
            f"{address} port {port} cannot be served: {error.strerror or error}",
            remedy="`--port 0` takes a free one",
        ) from error


def address_of(listener: socket.socket) -> str:
    """Return where a browser finds it."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def server_for(source: RunSource, *, any_host: bool) -> uvicorn.Server:
    """Return a server that has not begun."""
    servers: list[uvicorn.Server] = []

    def ending() -> bool:
        return servers[0].should_exit

    servers.append(
        uvicorn.Server(
            uvicorn.Config(
                live_app(source, any_host=any_host, ending=ending),
                lifespan="off",
                ws="none",
                http="h11",
                log_level="warning",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_END_LIMIT_S,
                limit_concurrency=64,  # a stream each: this is no public server
            )
        )
    )
    return servers[0]


def serve(source: RunSource, host: str | None, port: int, announce: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        source: The run.
        host: The address to listen on; None for loopback, where other names are refused.
        port: 0 for a free one.
        announce: Told where the page is, once it is there.

    Raises:
        UsageError: If the address cannot be had.
        KeyboardInterrupt: When a signal has ended it.
    """
    with listening(host, port) as listener:
        announce(address_of(listener))
        server = server_for(source, any_host=host is not None)
        server.run(sockets=[listener])
        if server.should_exit:  # uvicorn raises the signal again, but not always in time
            raise KeyboardInterrupt
