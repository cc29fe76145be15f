"""com.apple.coredevice.appservice: launch, list, signal and warn over RemoteXPC."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, Final

from orchestrator.domain.iphone import os_version
from orchestrator.virtual.coredevice.service import FeatureService, UnsupportedError
from orchestrator.virtual.dtx.signals import to_host
from orchestrator.virtual.kernel import BadSignalError
from orchestrator.virtual.services.apps.system_apps import SYSTEM_APPS

if TYPE_CHECKING:
    from orchestrator.virtual.coredevice.service import Feature
    from orchestrator.virtual.machine import Machine

# Developer images of this era stream their lists and never answer the plain request.
_STREAMS_FROM: Final = (26,)


def app_service(machine: Machine) -> FeatureService:
    """Return the service of one phone."""
    features = _AppFeatures(machine)
    lists: dict[str, Feature] = {
        "listapps": features.list_apps,
        "listprocesses": features.list_processes,
    }
    streams: dict[str, Feature] = {}
    if os_version(machine.identity.os) >= _STREAMS_FROM:
        streams = {
            "streamapplist": features.list_apps,
            "streamprocesslist": features.list_process_tokens,
        }
        del lists["listapps"]
    return FeatureService(
        {
            "launchapplication": features.launch,
            **lists,
            "sendmemorywarningtoprocess": features.warn,
            "sendsignaltoprocess": features.send_signal,
            "uninstallapp": features.uninstall,
        },
        streams,
    )


class _AppFeatures:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def launch(self, request: dict[str, Any]) -> dict[str, Any]:
        options = request["options"]
        bundle_id = request["applicationSpecifier"]["bundleIdentifier"]["_0"]
        pid = await self._machine.launch(
            str(bundle_id),
            {str(name): str(value) for name, value in options["environmentVariables"].items()},
            [str(argument) for argument in options["arguments"]],
            kill_existing=bool(options["terminateExisting"]),
        )
        if options.get("startStopped") is True:
            self._machine.send_signal(pid, signal.SIGSTOP)
        return {"processToken": self._token(pid)}

    def _token(self, pid: int) -> dict[str, Any]:
        process = self._machine.process(pid)
        path = process.path if process else ""
        return {"processIdentifier": pid, "executableURL": {"relative": f"file://{path}"}}

    async def list_processes(self, _request: dict[str, Any]) -> dict[str, Any]:
        return {"processTokens": await self.list_process_tokens({})}

    async def list_process_tokens(self, _request: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {
                "processIdentifier": process.pid,
                "executableURL": {"relative": f"file://{process.path}"},
            }
            for process in self._machine.processes()
        ]

    async def send_signal(self, request: dict[str, Any]) -> dict[str, Any]:
        pid, darwin = int(request["process"]["processIdentifier"]), int(request["signal"])
        number = to_host(darwin)
        if number is None:
            raise BadSignalError(darwin)
        self._machine.send_signal(pid, number)
        return {"process": request["process"], "signal": darwin}

    async def warn(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a memory warning, as `devicectl device process sendMemoryWarning` asks for."""
        process = request.get("process") or request["processToken"]
        pid = int(process["processIdentifier"])
        if self._machine.kernel.system.find(pid) is None:
            self._machine.kernel.warn(pid)
        return {"process": process}

    async def uninstall(self, request: dict[str, Any]) -> dict[str, Any]:
        bundle_id = str(request["bundleIdentifier"])
        if bundle_id in SYSTEM_APPS:
            raise UnsupportedError(f"{bundle_id} is part of the system")
        await self._machine.uninstall(bundle_id)
        return {"bundleIdentifier": bundle_id}

    async def list_apps(self, _request: dict[str, Any]) -> list[dict[str, Any]]:
        user = [
            {
                "bundleIdentifier": record.bundle_id,
                "name": record.installed.name,
                "version": record.installed.version,
                "bundleVersion": record.installed.build,
                "isRemovable": True,
                "isFirstParty": False,
            }
            for record in self._machine.apps.records().values()
        ]
        system = [
            {
                "bundleIdentifier": app.bundle_id,
                "name": app.name,
                "version": "1.0",
                "bundleVersion": "1",
                "isRemovable": False,
                "isFirstParty": True,
            }
            for app in SYSTEM_APPS.values()
        ]
        return [*user, *system]
