"""com.apple.instruments.server.services.deviceinfo: what runs, and what can be sampled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from orchestrator.virtual.dtx.sysmontap import PROCESS_ATTRIBUTES, SYSTEM_ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.virtual.dtx.connection import Method
    from orchestrator.virtual.machine import Machine

_CORES: Final = 6  # of every iPhone in the catalog


class DeviceInfo:
    """One channel."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    @property
    def methods(self) -> Mapping[str, Method]:
        """Selectors and what they call."""
        return {
            "execnameForPid:": self._executable,
            "hardwareInformation": self._hardware,
            "isRunningPid:": lambda pid: pid == 1 or self._executable(pid) != "",
            "runningProcesses": self._processes,
            "sysmonProcessAttributes": lambda: list(PROCESS_ATTRIBUTES),
            "sysmonSystemAttributes": lambda: list(SYSTEM_ATTRIBUTES),
            "systemInformation": self._system,
        }

    def closed(self) -> None:
        """Nothing to give back."""

    def _executable(self, pid: int) -> str:
        """Return the path of a running app's executable, empty if it does not run."""
        processes = self._machine.kernel.processes()
        return next((str(p.executable) for p in processes if p.pid == pid), "")

    def _processes(self) -> list[dict[str, Any]]:
        launchd = {
            "pid": 1,
            "name": "launchd",
            "realAppName": "/sbin/launchd",
            "isApplication": False,
        }
        apps = [
            {
                "pid": process.pid,
                "name": process.name,
                "realAppName": str(process.executable),
                "isApplication": True,
                "bundleIdentifier": process.bundle_id,
                "startDate": process.started_s,
            }
            for process in self._machine.kernel.processes()
        ]
        return [launchd, *apps]

    def _system(self) -> dict[str, Any]:
        identity = self._machine.identity
        return {
            "_deviceDescription": f"Build Version {identity.build}, iOS {identity.os}",
            "_deviceDisplayName": identity.model.model,
            "_deviceIdentifier": identity.udid,
            "_deviceVersion": identity.build,
            "_productType": identity.model.product_type,
            "_productVersion": identity.os,
        }

    def _hardware(self) -> dict[str, Any]:
        return {"numberOfCpus": _CORES, "numberOfPhysicalCpus": _CORES, "ProcessorSpeedMHz": 0}
