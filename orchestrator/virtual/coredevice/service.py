"""How a CoreDevice service answers: a feature has a name, takes a dictionary, gives one back.

A streaming feature gives a list in pieces, on the request's side channel.
Source: pymobiledevice3, `remote/core_device/core_device_service.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from orchestrator.virtual.kernel import BadSignalError, NoSuchProcessError
from orchestrator.virtual.machine import LaunchDeniedError
from orchestrator.virtual.xpc.peer import XpcPeer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.virtual.wire import Stream
    from orchestrator.virtual.xpc.codec import Message

PREFIX: Final = "com.apple.coredevice.feature."
_CORE_DEVICE: Final = "com.apple.dt.CoreDeviceError"
_STATUS: Final = "CoreDevice.XPCMessageKey.sideChannelStatus"
_CHANNEL: Final = "XPCSideChannel.uniqueIdentifier"
_PIECE: Final = 32  # elements a message

Feature: TypeAlias = Callable[[dict[str, Any]], Awaitable[Any]]


class UnsupportedError(Exception):
    """The phone has the feature and does not do this."""


class FeatureService:
    """One service: plain features, and those whose lists are streamed."""

    def __init__(self, plain: Mapping[str, Feature], streamed: Mapping[str, Feature]) -> None:
        self._plain, self._streamed = plain, streamed

    @property
    def properties(self) -> dict[str, Any]:
        """What the table of services says about it."""
        names = [f"{PREFIX}{name}" for name in (*self._plain, *self._streamed)]
        return {"UsesRemoteXPC": True, "ServiceVersion": 1, "Features": names}

    async def serve(self, stream: Stream) -> None:
        """Serve one connection until the host leaves."""
        await XpcPeer(stream, self._answer).run()

    async def _answer(self, peer: XpcPeer, message: Message) -> None:
        body = message.body if isinstance(message.body, dict) else {}
        name = str(body.get("CoreDevice.featureIdentifier", "")).removeprefix(PREFIX)
        given = body.get("CoreDevice.input")
        request: dict[str, Any] = given if isinstance(given, dict) else {}
        if name in self._streamed:
            await self._stream(peer, message, self._streamed[name], request)
        elif name in self._plain:
            await peer.reply(message, await _result(self._plain[name], request))
        else:
            await peer.reply(message, _failure(_CORE_DEVICE, 1001, f"no feature {name[:80]!r}"))

    async def _stream(
        self, peer: XpcPeer, message: Message, feature: Feature, request: dict[str, Any]
    ) -> None:
        proxy, given = request.get("streamProxy"), request.get("actualInput")
        channel = proxy.get("sideChannel") if isinstance(proxy, dict) else None
        result = await _result(feature, given if isinstance(given, dict) else {})
        elements = result.get("CoreDevice.output")
        if elements is None:
            status = {"receivedError": result["CoreDevice.error"]}
            await peer.reply(message, {_STATUS: status, _CHANNEL: channel})
            return
        for start in range(0, len(elements), _PIECE):
            piece = {"pushing": {"elements": elements[start : start + _PIECE]}}
            await peer.reply(message, {_STATUS: piece, _CHANNEL: channel})
        await peer.reply(message, {_STATUS: {"finishStreaming": {}}, _CHANNEL: channel})


async def _result(feature: Feature, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"CoreDevice.output": await feature(request)}
    except LaunchDeniedError as denial:
        return _failure(denial.domain, denial.code, denial.text)
    except NoSuchProcessError as error:
        return _failure("NSPOSIXErrorDomain", 3, str(error))
    except BadSignalError as error:
        return _failure("NSPOSIXErrorDomain", 22, str(error))
    except UnsupportedError as error:
        return _failure(_CORE_DEVICE, 1003, str(error))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        return _failure(_CORE_DEVICE, 1002, f"incomplete request: {error!r}")


def _failure(domain: str, code: int, text: str) -> dict[str, Any]:
    error = {"domain": domain, "code": code, "userInfo": {"NSLocalizedDescription": text}}
    return {"CoreDevice.error": error}
