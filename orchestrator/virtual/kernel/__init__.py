"""The kernel model of a virtual iPhone: child processes, memory limit, reports of deaths."""

from orchestrator.virtual.kernel.conditions import (
    BatteryChange,
    Condition,
    ForegroundChange,
    LowPowerChange,
    MemoryWarning,
    ThermalChange,
    ThermalLevel,
)
from orchestrator.virtual.kernel.errors import (
    BadSignalError,
    KernelError,
    LaunchRefusedError,
    NoSuchProcessError,
)
from orchestrator.virtual.kernel.kernel import Kernel
from orchestrator.virtual.kernel.values import (
    AppChange,
    InstalledApp,
    KernelFacts,
    LogLine,
    MemoryEvent,
    ProcessInfo,
    ProcessListener,
)

__all__ = [
    "AppChange",
    "BadSignalError",
    "BatteryChange",
    "Condition",
    "ForegroundChange",
    "InstalledApp",
    "Kernel",
    "KernelError",
    "KernelFacts",
    "LaunchRefusedError",
    "LogLine",
    "LowPowerChange",
    "MemoryEvent",
    "MemoryWarning",
    "NoSuchProcessError",
    "ProcessInfo",
    "ProcessListener",
    "ThermalChange",
    "ThermalLevel",
]
