"""com.apple.instruments.server.services.deviceinfo: what runs, and what can be sampled."""

from __future__ import annotations

import datetime as dt
import time
from typing import TYPE_CHECKING, Any, Final

from orchestrator.virtual.dtx.connection import CallError
from orchestrator.virtual.dtx.nska import NSError
from orchestrator.virtual.dtx.sysmontap import PROCESS_ATTRIBUTES, SYSTEM_ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.virtual.dtx.connection import Method
    from orchestrator.virtual.machine import Machine

_CORES: Final = 6  # of every iPhone in the catalog
_KERNEL_NAME: Final = "mach.release.{chip}"

# A phone's first level, and the folders that clients look into.
_FOLDERS: Final = {
    "/": (
        *(".ba", ".file", "Applications", "Developer", "Library", "System", "bin", "cores", "dev"),
        *("etc", "private", "sbin", "tmp", "usr", "var"),
    ),
    "/private": ("etc", "preboot", "system_data", "var", "xarts"),
    "/private/var": ("containers", "db", "folders", "log", "mobile", "root", "run", "tmp"),
    "/usr": ("bin", "lib", "libexec", "local", "sbin", "share", "standalone"),
}
_NETWORK: Final = {
    "awdl0": "Unknown",
    "en0": "Wi-Fi",
    "en1": "Ethernet Adaptor (en1)",
    "lo0": "Loopback",
    "pdp_ip0": "Cellular (pdp_ip0)",
    "utun0": "Unknown",
}
_USERS: Final = {0: "root", 501: "mobile"}
_GROUPS: Final = {0: "wheel", 501: "mobile"}


class DeviceInfo:
    """One channel."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    @property
    def methods(self) -> Mapping[str, Method]:
        """Selectors and what they call."""
        return {
            "directoryListingForPath:": self._list_folder,
            "execnameForPid:": self._executable,
            "hardwareInformation": self._hardware,
            "kpepDatabase": lambda: None,
            "isRunningPid:": lambda pid: self._machine.process(pid) is not None,
            "machKernelName": self._kernel_name,
            "machTimeInfo": self._mach_time,
            "nameForGID:": lambda gid: _GROUPS.get(gid, ""),
            "nameForUID:": lambda uid: _USERS.get(uid, ""),
            "networkInformation": lambda: dict(_NETWORK),
            "runningProcesses": self._processes,
            "sysmonProcessAttributes": lambda: list(PROCESS_ATTRIBUTES),
            "sysmonSystemAttributes": lambda: list(SYSTEM_ATTRIBUTES),
            "systemInformation": self._system,
        }

    def closed(self) -> None:
        """Nothing to give back."""

    def _list_folder(self, path: object) -> list[str]:
        names = _FOLDERS.get(str(path).rstrip("/") or "/")
        if names is None:
            text = f"The folder {str(path)[:200]!r} doesn't exist."
            raise CallError(NSError.of("NSCocoaErrorDomain", 260, text))
        return list(names)

    def _executable(self, pid: int) -> str:
        """Return the path of a running process's executable, empty if it does not run."""
        process = self._machine.process(pid)
        return process.path if process else ""

    def _processes(self) -> list[dict[str, Any]]:
        rows = []
        for process in self._machine.processes():
            row = {
                "pid": process.pid,
                "name": process.name,
                "realAppName": process.path,
                "isApplication": process.is_app,
                "startDate": dt.datetime.fromtimestamp(process.started_s, dt.UTC),
            }
            rows.append(row | ({"bundleIdentifier": process.bundle_id} if process.is_app else {}))
        return rows

    def _kernel_name(self) -> str:
        return _KERNEL_NAME.format(chip=self._machine.identity.model.chip)

    def _mach_time(self) -> list[Any]:
        """Return mach time, its timebase (24 MHz), and the time of day with its offset."""
        ticks = int((time.time() - self._machine.boot_time_s) * 24_000_000)
        return [ticks, 125, 3, ticks, time.time(), 0]

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
