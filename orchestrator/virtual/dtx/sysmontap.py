"""com.apple.instruments.server.services.sysmontap: periodic samples of processes and memory."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.virtual.dtx.connection import Channel, Method
    from orchestrator.virtual.kernel import ProcessInfo
    from orchestrator.virtual.kernel.residents import SystemProcess
    from orchestrator.virtual.machine import Machine

# The names that phones give. What a virtual phone cannot know of a process is null.
PROCESS_ATTRIBUTES: Final = (
    *("memVirtualSize", "cpuUsage", "procStatus", "appSleep", "uid", "vmPageIns", "memRShrd"),
    *("ctxSwitch", "memCompressed", "intWakeups", "cpuTotalSystem", "responsiblePID"),
    *("physFootprint", "cpuTotalUser", "sysCallsUnix", "memResidentSize", "sysCallsMach"),
    *("memPurgeable", "diskBytesRead", "machPortCount", "__suddenTerm", "__arch", "memRPrvt"),
    *("msgSent", "ppid", "threadCount", "memAnon", "diskBytesWritten", "pgid", "faults"),
    *("msgRecv", "__restricted", "pid", "__sandbox", "name"),
)
SYSTEM_ATTRIBUTES: Final = (
    *("diskWriteOps", "diskBytesRead", "diskBytesWritten", "threadCount", "vmCompressorPageCount"),
    *("vmExtPageCount", "vmFreeCount", "vmIntPageCount", "vmPurgeableCount", "netPacketsIn"),
    *("vmWireCount", "netBytesIn", "netPacketsOut", "diskReadOps", "vmUsedCount", "__vmSwapUsage"),
    *("netBytesOut", "physMemSize"),
)

_PAGE_BYTES: Final = 16_384  # of iPhones
_DEFAULT_PERIOD_MS: Final = 500
_MIN_PERIOD_S: Final = 0.02
_CORES: Final = 6
_PROCESS_ROWS, _SYSTEM_ROWS = 5, 43  # `Type` of a row
_MOBILE: Final = 501  # the user that apps run as


class Sysmontap:
    """One channel. The first object is an acknowledgement, then lists of rows."""

    def __init__(self, machine: Machine, channel: Channel) -> None:
        self._machine, self._channel = machine, channel
        self._config: dict[str, Any] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._cpu_before: dict[int, tuple[float, float]] = {}  # pid: CPU seconds, clock seconds

    @property
    def methods(self) -> Mapping[str, Method]:
        """Selectors and what they call."""
        return {"setConfig:": self._set_config, "start": self._start, "stop": self.closed}

    def closed(self) -> None:
        """Stop sampling."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_config(self, config: object) -> None:
        self._config = config if isinstance(config, dict) else {}

    def _start(self) -> None:
        self.closed()
        self._channel.push({"k": "ack"})
        self._sample()

    def _sample(self) -> None:
        self._channel.push([self._process_row(), self._system_row()])
        self._timer = asyncio.get_running_loop().call_later(self._period_s(), self._sample)

    def _period_s(self) -> float:
        period_ms = self._config.get("ur", _DEFAULT_PERIOD_MS)
        return max(_MIN_PERIOD_S, period_ms / 1000) if isinstance(period_ms, int) else _MIN_PERIOD_S

    def _names(self, key: str, default: tuple[str, ...]) -> list[str]:
        names = self._config.get(key)
        return [str(name) for name in names] if isinstance(names, list) else list(default)

    def _process_row(self) -> dict[str, Any]:
        names, kernel = self._names("procAttrs", PROCESS_ATTRIBUTES), self._machine.kernel
        values = {row.pid: _resident_values(row) for row in kernel.system.running()}
        values |= {app.pid: self._app_values(app) for app in kernel.processes()}
        now = time.monotonic_ns()
        return {
            "Processes": {
                pid: [known.get(name) for name in names] for pid, known in values.items() if known
            },
            "StartMachAbsTime": now,
            "EndMachAbsTime": now,
            "Type": _PROCESS_ROWS,
        }

    def _app_values(self, process: ProcessInfo) -> dict[str, Any]:
        """Return the attributes of one app; empty if it died meanwhile."""
        kernel = self._machine.kernel
        footprint, cpu_s = kernel.footprint_bytes(process.pid), kernel.cpu_time_s(process.pid)
        if footprint is None or cpu_s is None:
            return {}
        return {
            "pid": process.pid,
            "ppid": 1,
            "uid": _MOBILE,
            "name": process.name,
            "cpuUsage": self._cpu_percent(process.pid, cpu_s),
            "cpuTotalUser": round(cpu_s * 1e9),
            "cpuTotalSystem": 0,
            "physFootprint": footprint,
            "memResidentSize": footprint,
            "memAnon": footprint,
            "memCompressed": 0,
            "memPurgeable": 0,
        }

    def _cpu_percent(self, pid: int, cpu_s: float) -> float | None:
        """Return CPU use since the last sample, 100 for one core; None for the first sample."""
        now_s = time.monotonic()
        before = self._cpu_before.get(pid)
        self._cpu_before[pid] = (cpu_s, now_s)
        if before is None or now_s <= before[1]:
            return None
        return 100.0 * (cpu_s - before[0]) / (now_s - before[1])

    def _system_row(self) -> dict[str, Any]:
        values = self._system_values()
        return {
            "System": [values.get(name) for name in self._names("sysAttrs", SYSTEM_ATTRIBUTES)],
            "SystemCPUUsage": {"CPU_TotalLoad": 0.0},
            "CPUCount": _CORES,
            "EnabledCPUs": _CORES,
            "Type": _SYSTEM_ROWS,
        }

    def _system_values(self) -> dict[str, Any]:
        """Return the phone's memory: bytes for `physMemSize`, pages for the counts."""
        kernel = self._machine.kernel
        physical = self._machine.identity.model.physical_memory_bytes
        apps = sum(kernel.footprint_bytes(p.pid) or 0 for p in kernel.processes())
        used = apps // _PAGE_BYTES + sum(row.pages for row in kernel.system.running())
        return {
            "physMemSize": physical,
            "vmUsedCount": used,
            "vmFreeCount": max(0, physical // _PAGE_BYTES - used),
            "vmWireCount": physical // _PAGE_BYTES // 7,
            "vmCompressorPageCount": 0,
            "__vmSwapUsage": 0,
            "netBytesIn": 0,
            "netBytesOut": 0,
        }


def _resident_values(row: SystemProcess) -> dict[str, Any]:
    memory = row.pages * _PAGE_BYTES
    return {
        "pid": row.pid,
        "ppid": 0 if row.pid <= 1 else 1,
        "uid": 0,
        "name": row.name,
        "cpuUsage": 0.0,
        "cpuTotalUser": 0,
        "cpuTotalSystem": 0,
        "physFootprint": memory,
        "memResidentSize": memory,
        "memAnon": memory,
        "memCompressed": 0,
        "memPurgeable": 0,
    }
