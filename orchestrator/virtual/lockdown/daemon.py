"""One conversation with lockdownd. Requests are plists; every reply repeats `Request`."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Final, Protocol

from orchestrator.virtual.wire import ProtocolError, encode_plist

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from orchestrator.virtual.lockdown.pairing import Pairings
    from orchestrator.virtual.lockdown.values import DeviceValues
    from orchestrator.virtual.wire import Plist, Stream

LOCKDOWN_PORT: Final = 62078
IDLE_LIMIT_S: Final = 60.0  # then lockdownd closes a connection from usbmux

_NEEDS_SESSION: Final = frozenset({"SetValue", "RemoveValue", "StartService", "EnterRecovery"})


class ServiceStarter(Protocol):
    """Opens a port for a named service."""

    def start_service(self, name: str) -> tuple[int, bool] | str:
        """Return (port, whether it speaks TLS), or the name of lockdown's error."""


class Lockdownd:
    """The daemon; `serve` and `serve_trusted` each answer one connection."""

    def __init__(
        self,
        values: DeviceValues,
        pairings: Pairings,
        starter: ServiceStarter,
        leave: Callable[[], None],
    ) -> None:
        """Make the daemon of one phone; `leave` takes it away for recovery mode."""
        self._values, self._pairings = values, pairings
        self._starter, self._leave = starter, leave

    async def serve(self, stream: Stream) -> None:
        """Answer a connection from usbmux, which must open a session to be trusted."""
        await self._conversation(trusted=False).run(stream)

    async def serve_trusted(self, stream: Stream) -> None:
        """Answer a connection from the tunnel, which is trusted already."""
        await self._conversation(trusted=True).run(stream)

    def _conversation(self, *, trusted: bool) -> _Conversation:
        return _Conversation(
            self._values, self._pairings, self._starter, self._leave, trusted=trusted
        )


class _Conversation:
    def __init__(
        self,
        values: DeviceValues,
        pairings: Pairings,
        starter: ServiceStarter,
        leave: Callable[[], None],
        *,
        trusted: bool,
    ) -> None:
        self._values, self._pairings = values, pairings
        self._starter, self._leave = starter, leave
        self._trusted = trusted
        self._session: str | None = None
        self._pending_tls: ssl.SSLContext | None = None
        self._answers: dict[str, Callable[[Plist], Plist]] = {
            "QueryType": lambda _: {"Type": "com.apple.mobile.lockdown"},
            "GetValue": self._get_value,
            "SetValue": lambda request: self._set_value(request, request.get("Value")),
            "RemoveValue": lambda request: self._set_value(request, None),
            "Pair": lambda request: pairings.pair(request.get("PairRecord")),
            "ValidatePair": self._validate_pair,
            "Unpair": lambda request: pairings.unpair(request.get("PairRecord")),
            "StartSession": self._start_session,
            "StopSession": self._stop_session,
            "StartService": self._start_service,
            "EnterRecovery": self._enter_recovery,
            "Goodbye": lambda _: {"Result": "Success"},
        }

    async def run(self, stream: Stream) -> None:
        while True:
            try:
                async with asyncio.timeout(None if self._trusted else IDLE_LIMIT_S):
                    request = await stream.read_plist()
            except TimeoutError:
                return
            kind = request.get("Request")
            if not isinstance(kind, str):
                raise ProtocolError("a lockdown request without a name")
            reply = {"Request": kind, **self._answer(kind, request)}
            context, self._pending_tls = self._pending_tls, None
            if context is None:
                await stream.send_plist(reply)
            else:
                stream.expect_tls()
                await stream.send_plist(reply)
                await stream.start_tls(context)

    @property
    def _has_session(self) -> bool:
        return self._trusted or self._session is not None

    def _answer(self, kind: str, request: Plist) -> Plist:
        if kind in _NEEDS_SESSION and not self._has_session:
            return {"Error": "SessionInactive"}
        answer = self._answers.get(kind)
        return answer(request) if answer else {"Error": "InvalidRequest"}

    def _get_value(self, request: Plist) -> Plist:
        domain, key = _text(request, "Domain"), _text(request, "Key")
        echoed: Plist = {name: request[name] for name in ("Domain", "Key") if name in request}
        value = self._values.get(domain or "", key, trusted=self._has_session)
        return {**echoed, "Error": "MissingValue"} if value is None else {**echoed, "Value": value}

    def _set_value(self, request: Plist, value: object) -> Plist:
        key = _text(request, "Key")
        if key is None:
            return {"Error": "MissingKey"}
        try:
            encode_plist({key: value})  # what is set is read back
        except ProtocolError:
            return {"Key": key, "Error": "InvalidArgument"}
        self._values.set(_text(request, "Domain") or "", key, value)
        return {"Key": key, "Result": "Success"}

    def _validate_pair(self, request: Plist) -> Plist:
        record = request.get("PairRecord")
        host_id = record.get("HostID") if isinstance(record, dict) else None
        known = self._pairings.knows(host_id)
        return {"Result": "Success"} if known else {"Error": "InvalidHostID"}

    def _start_session(self, request: Plist) -> Plist:
        host_id = request.get("HostID")
        if self._session is not None:
            return {"Error": "SessionActive"}
        if not isinstance(host_id, str) or not self._pairings.knows(host_id):
            return {"Error": "InvalidHostID"}
        self._session = str(uuid.uuid4()).upper()
        if not self._trusted:
            self._pending_tls = self._pairings.session_context(host_id)
        return {"SessionID": self._session, "EnableSessionSSL": not self._trusted}

    def _stop_session(self, _request: Plist) -> Plist:
        self._session = None
        return {"Result": "Success"}

    def _enter_recovery(self, _request: Plist) -> Plist:
        """Go to recovery mode, where usbmuxd does not see a phone: it is switched off."""
        asyncio.get_running_loop().call_soon(self._leave)
        return {"Result": "Success"}

    def _start_service(self, request: Plist) -> Plist:
        name = _text(request, "Service") or ""
        started = self._starter.start_service(name)
        if isinstance(started, str):
            return {"Service": name, "Error": started}
        port, tls = started
        return {"Service": name, "Port": port, "EnableServiceSSL": tls}


def _text(request: Plist, key: str) -> str | None:
    value = request.get(key)
    return value if isinstance(value, str) else None
