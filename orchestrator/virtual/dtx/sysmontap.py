"""com.apple.instruments.server.services.sysmontap: periodic samples of processes and memory."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.virtual.dtx.connection import Channel, Method
    from orchestrator.virtual.kernel import ProcessInfo
    from orchestrator.virtual.machine import Machine

PROCESS_ATTRIBUTES: Final = (
    "pid",
    "name",
    "cpuUsage",
    "physFootprint",
    "memResidentSize",
    "memAnon",
)
SYSTEM_ATTRIBUTES: Final = ("physMemSize", "vmUsedCount", "vmFreeCount", "netBytesIn")

_PAGE_BYTES: Final = 16_384  # of iPhones
_DEFAULT_PERIOD_MS: Final = 500
_MIN_PERIOD_S: Final = 0.02
_CORES: Final = 6
_PROCESS_ROWS, _SYSTEM_ROWS = 5, 43  # `Type` of a row


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
        names = self._names("procAttrs", PROCESS_ATTRIBUTES)
        processes = {
            process.pid: [values.get(name) for name in names]
            for process in self._machine.kernel.processes()
            if (values := self._process_values(process))
        }
        now = time.monotonic_ns()
        return {
            "Processes": processes,
            "StartMachAbsTime": now,
            "EndMachAbsTime": now,
            "Type": _PROCESS_ROWS,
        }

    def _process_values(self, process: ProcessInfo) -> dict[str, Any]:
        """Return the attributes of one process; empty if it died meanwhile."""
        footprint = self._machine.kernel.footprint_bytes(process.pid)
        if footprint is None:
            return {}
        return {
            "pid": process.pid,
            "name": process.name,
            "cpuUsage": self._cpu_percent(process.pid),
            "physFootprint": footprint,
            "memResidentSize": footprint,
            "memAnon": footprint,
        }

    def _cpu_percent(self, pid: int) -> float | None:
        """Return CPU use since the last sample, 100 for one core; None for the first sample."""
        cpu_s = self._machine.kernel.cpu_time_s(pid)
        if cpu_s is None:
            return None
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
        used = sum(kernel.footprint_bytes(p.pid) or 0 for p in kernel.processes())
        return {
            "physMemSize": physical,
            "vmUsedCount": used // _PAGE_BYTES,
            "vmFreeCount": max(0, physical - used) // _PAGE_BYTES,
            "netBytesIn": 0,
        }
