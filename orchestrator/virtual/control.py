"""The control socket of a farm: JSON lines that list phones, begin faults and read the log.

A unix socket in a folder that only this user can enter; it goes with the farm.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

from orchestrator.virtual.connections import Connections
from orchestrator.virtual.faults.base import FaultError
from orchestrator.virtual.faults.vocabulary import fault_of
from orchestrator.virtual.wire import SocketStream

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from orchestrator.virtual.events import Event
    from orchestrator.virtual.farm import Farm
    from orchestrator.virtual.wire import Stream

_LINE_LIMIT_BYTES: Final = 1 << 20


class ControlServer:
    """Answers requests: `{"do": "list"|"fault"|"mend"|"log", ...}`, one line each."""

    def __init__(self, farm: Farm) -> None:
        self._farm = farm
        self._connections = Connections()
        self._server: asyncio.Server | None = None
        self._requests: dict[str, Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]] = {
            "list": self._list,
            "fault": self._fault,
            "mend": self._mend,
        }

    async def open(self, path: Path) -> None:
        """Listen."""
        self._server = await asyncio.start_unix_server(self._accept, path, limit=_LINE_LIMIT_BYTES)

    async def close(self) -> None:
        """Stop listening and end every connection."""
        if self._server is not None:
            self._server.close()
        await self._connections.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await self._connections.run(self._serve, SocketStream(reader, writer))

    async def _serve(self, stream: Stream) -> None:
        while line := await stream.reader.readline():
            request = _parsed(line)
            if request.get("do") == "log":
                await self._log(stream, request)
            else:
                await _send(stream, await self._answer(request))

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        act = self._requests.get(str(request.get("do")))
        if act is None:
            return {"ok": False, "error": "do: list, fault, mend or log"}
        try:
            return {"ok": True, **(await act(request))}
        except FaultError as error:
            return {"ok": False, "error": str(error)}

    async def _list(self, _request: dict[str, Any]) -> dict[str, Any]:
        return {"phones": [self._row(place) for place in range(len(self._farm.phones))]}

    def _row(self, place: int) -> dict[str, Any]:
        phone = self._farm.phones[place]
        identity, settings = phone.identity, phone.settings
        return {
            "name": identity.name,
            "udid": identity.udid,
            "model": identity.model.model,
            "os": identity.os,
            "attached": self._farm.mux.is_attached(phone),
            "locked": settings.locked,
            "battery_percent": settings.battery.level_percent,
            "thermal": settings.thermal.value,
            "apps": [process.name for process in phone.machine.kernel.processes()],
            "faults": self._farm.faults.active(phone),
        }

    async def _fault(self, request: dict[str, Any]) -> dict[str, Any]:
        settings, for_s = request.get("settings"), request.get("for_s")
        fault = fault_of(str(request.get("kind")), settings if isinstance(settings, dict) else {})
        await self._farm.faults.begin(
            str(request.get("phone")), fault, for_s if isinstance(for_s, int | float) else None
        )
        return {}

    async def _mend(self, request: dict[str, Any]) -> dict[str, Any]:
        kind = request.get("kind")
        count = await self._farm.faults.mend(
            str(request.get("phone")), kind if isinstance(kind, str) else None
        )
        return {"undone": count}

    async def _log(self, stream: Stream, request: dict[str, Any]) -> None:
        """Send events as lines, and go on with new ones if the request says `follow`."""
        since = request.get("since")
        for event in self._farm.events.since(since if isinstance(since, int) else 0):
            stream.writer.write(f"{event.as_json()}\n".encode())
        await stream.writer.drain()
        if request.get("follow") is not True:
            await _send(stream, {"ok": True})
            return

        def send(event: Event) -> None:
            stream.writer.write(f"{event.as_json()}\n".encode())

        self._farm.events.listeners.add(send)
        try:
            await stream.until_closed()
        finally:
            self._farm.events.listeners.discard(send)


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except ValueError:
        return {}
    return request if isinstance(request, dict) else {}


async def _send(stream: Stream, document: dict[str, Any]) -> None:
    await stream.send(f"{json.dumps(document)}\n".encode())
