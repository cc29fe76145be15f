"""The routes of `fleet serve`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from orchestrator.domain.errors import FleetError
from orchestrator.live.lines import text_of
from orchestrator.live.table import FRAME_LINES, Terminal, run_lines
from orchestrator.live.web.guard import REPORT_CSP, Guard
from orchestrator.live.web.source import LOOK_EVERY_S
from orchestrator.live.web.view import page_view

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from orchestrator.live.web.source import RunSource

STATIC: Final = Path(__file__).parent / "static"
TEXT_WIDTH: Final = 120
SILENCE_S: Final = 15.0  # then a comment goes out, which finds out who has left
_STATIC: Final = {
    "/": ("index.html", "text/html"),
    "/live.css": ("live.css", "text/css"),
    "/live.js": ("live.js", "text/javascript"),
}


def live_app(
    source: RunSource, *, any_host: bool, ending: Callable[[], bool] = lambda: False
) -> ASGIApp:
    """Return the application.

    Args:
        source: The run.
        any_host: Whether requests may name another host than loopback.
        ending: Says whether the server wants to stop, and streams must end.
    """
    answers = _Answers(source, ending)
    routes = [Route(path, _file(*of)) for path, of in _STATIC.items()]
    routes += [
        Route("/state.json", answers.state),
        Route("/events", answers.events),
        Route("/text", answers.text),
        Route("/report", answers.report),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guard, any_host=any_host)])


def _file(name: str, kind: str) -> Callable[[Request], Response]:
    content = (STATIC / name).read_bytes()

    def answer(_: Request) -> Response:
        return Response(content, media_type=kind)

    return answer


class _Answers:
    """Plain functions are called in worker threads: reading a run blocks."""

    def __init__(self, source: RunSource, ending: Callable[[], bool]) -> None:
        self._source, self._ending = source, ending

    def state(self, _: Request) -> Response:
        try:
            return Response(self._view(), media_type="application/json")
        except FleetError as error:
            return Response(_trouble(error), 503, media_type="application/json")

    def text(self, _: Request) -> Response:
        """The terminal's table, every phone: for a browser without scripts, and for curl."""
        try:
            run = self._source.look()
        except FleetError as error:
            return PlainTextResponse(f"{error}\n", 503)
        height = 2 * len(run.phones) + FRAME_LINES + 4
        lines = run_lines(run, Terminal(TEXT_WIDTH, height))
        return PlainTextResponse("".join(f"{text_of(line)}\n" for line in lines))

    def report(self, _: Request) -> Response:
        content = self._source.report()
        if content is None:
            return PlainTextResponse("The report is made when the run is over\n", 404)
        return Response(
            content, media_type="text/html", headers={"content-security-policy": REPORT_CSP}
        )

    async def events(self, _: Request) -> Response:
        return StreamingResponse(self._stream(), media_type="text/event-stream")

    async def _stream(self) -> AsyncIterator[bytes]:
        sent, silent_s = b"", 0.0
        while not self._ending():
            event = await anyio.to_thread.run_sync(self._event)
            if event != sent:
                sent, silent_s = event, 0.0
                yield event
            elif silent_s >= SILENCE_S:
                silent_s = 0.0
                yield b": still here\n\n"
            silent_s += LOOK_EVERY_S
            await anyio.sleep(LOOK_EVERY_S)

    def _event(self) -> bytes:
        try:
            return b"event: run\ndata: " + self._view() + b"\n\n"
        except FleetError as error:
            return b"event: trouble\ndata: " + _trouble(error) + b"\n\n"

    def _view(self) -> bytes:
        return msgspec.json.encode(page_view(self._source.look()))


def _trouble(error: FleetError) -> bytes:
    return msgspec.json.encode({"error": str(error)})
