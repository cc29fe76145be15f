"""com.apple.coredevice.appservice: launch, list and signal over RemoteXPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from orchestrator.virtual.dtx.signals import to_host
from orchestrator.virtual.kernel import NoSuchProcessError
from orchestrator.virtual.machine import LaunchDeniedError
from orchestrator.virtual.xpc.peer import XpcPeer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from orchestrator.virtual.machine import Machine
    from orchestrator.virtual.wire import Stream
    from orchestrator.virtual.xpc.codec import Message

_PREFIX: Final = "com.apple.coredevice.feature."
_FEATURES: Final = ("launchapplication", "listprocesses", "sendsignaltoprocess", "listapps")

PROPERTIES: Final = {
    "UsesRemoteXPC": True,
    "ServiceVersion": 1,
    "Features": [f"{_PREFIX}{name}" for name in _FEATURES],
}


class AppService:
    """The service."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._features: dict[str, Callable[[dict[str, Any]], Awaitable[Any]]] = {
            "launchapplication": self._launch,
            "listprocesses": self._list_processes,
            "sendsignaltoprocess": self._send_signal,
            "listapps": self._list_apps,
        }

    async def serve(self, stream: Stream) -> None:
        """Serve one connection until the host leaves."""
        await XpcPeer(stream, self._answer).run()

    async def _answer(self, peer: XpcPeer, message: Message) -> None:
        body = message.body if isinstance(message.body, dict) else {}
        name = str(body.get("CoreDevice.featureIdentifier", "")).removeprefix(_PREFIX)
        feature = self._features.get(name)
        if feature is None:
            reply = _failure("com.apple.dt.CoreDeviceError", 1001, f"no feature {name!r}")
        else:
            reply = await self._result(feature, body.get("CoreDevice.input"))
        await peer.reply(message, reply)

    async def _result(
        self, feature: Callable[[dict[str, Any]], Awaitable[Any]], request: object
    ) -> dict[str, Any]:
        try:
            return {
                "CoreDevice.output": await feature(request if isinstance(request, dict) else {})
            }
        except LaunchDeniedError as denial:
            return _failure(denial.domain, denial.code, denial.text)
        except NoSuchProcessError as error:
            return _failure("NSPOSIXErrorDomain", 3, str(error))
        except (KeyError, TypeError, AttributeError) as error:
            return _failure("com.apple.dt.CoreDeviceError", 1002, f"incomplete request: {error!r}")

    async def _launch(self, request: dict[str, Any]) -> dict[str, Any]:
        options = request["options"]
        bundle_id = request["applicationSpecifier"]["bundleIdentifier"]["_0"]
        pid = await self._machine.launch(
            str(bundle_id),
            {str(name): str(value) for name, value in options["environmentVariables"].items()},
            [str(argument) for argument in options["arguments"]],
            kill_existing=bool(options["terminateExisting"]),
        )
        return {"processToken": self._token(pid)}

    def _token(self, pid: int) -> dict[str, Any]:
        processes = self._machine.kernel.processes()
        path = next((str(p.executable) for p in processes if p.pid == pid), "")
        return {"processIdentifier": pid, "executableURL": {"relative": f"file://{path}"}}

    async def _list_processes(self, _request: dict[str, Any]) -> dict[str, Any]:
        processes = self._machine.kernel.processes()
        return {"processTokens": [self._token(process.pid) for process in processes]}

    async def _send_signal(self, request: dict[str, Any]) -> dict[str, Any]:
        pid, signal = request["process"]["processIdentifier"], int(request["signal"])
        number = to_host(signal)
        if number is None:
            raise KeyError(f"signal {signal}")
        self._machine.kernel.send_signal(pid, number)
        return {"process": request["process"], "signal": signal}

    async def _list_apps(self, _request: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {
                "bundleIdentifier": record.bundle_id,
                "name": record.installed.name,
                "version": record.installed.version,
                "bundleVersion": record.installed.build,
            }
            for record in self._machine.apps.records().values()
        ]


def _failure(domain: str, code: int, text: str) -> dict[str, Any]:
    error = {"domain": domain, "code": code, "userInfo": {"NSLocalizedDescription": text}}
    return {"CoreDevice.error": error}
