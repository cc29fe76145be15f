"""What every request must be, and what every answer carries: read-only, and nobody else's page.

A page of another site can make a browser ask a server on loopback; with a DNS name that it
points at 127.0.0.1 it could read the answer too. Such a request names another host.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

CSP: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REPORT_CSP: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
_READING: Final = frozenset({"GET", "HEAD"})


class Guard:
    """ASGI middleware.

    Args:
        app: What answers.
        any_host: Whether a person asked to be served under other names than loopback's.
    """

    def __init__(self, app: ASGIApp, *, any_host: bool) -> None:
        self._app, self._any_host = app, any_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return  # websockets are refused by the server, which speaks none
        app: ASGIApp = self._app
        if scope["method"] not in _READING:
            app = PlainTextResponse("read-only\n", 405, headers={"allow": "GET, HEAD"})
        elif not self._any_host and not is_loopback(_host(scope)):
            app = PlainTextResponse(
                "Served under loopback names only; `fleet serve --host` changes that\n",
                421,
            )

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("content-security-policy", CSP)
            await send(message)

        await app(scope, receive, with_headers)


def is_loopback(host: str) -> bool:
    """Return whether a Host header names this machine's loopback."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _host(scope: Scope) -> str:
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    return hosts[0].decode("latin-1") if len(hosts) == 1 else ""
