"""Why a process ended, as a crash report puts it: a fault of its own, or a termination by iOS.

Source: Apple's technical notes on exception and termination codes; published reports.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.kernel.conditions import ThermalLevel

if TYPE_CHECKING:
    from collections.abc import Mapping

WATCHDOG_CODE: Final = 0x8BADF00D
THERMAL_CODE: Final = 0xC00010FF
_WATCHDOG_DOMAIN: Final = 10
_FLAGS: Final = 6

_LEVEL_NUMBERS: Final = {
    ThermalLevel.NOMINAL: 0,
    ThermalLevel.FAIR: 5,
    ThermalLevel.SERIOUS: 9,
    ThermalLevel.CRITICAL: 12,
}


@dataclass(frozen=True, slots=True)
class Fault:
    """How a report names one signal."""

    exception: str
    number: int  # Darwin's, which is not always the host's
    indicator: str


FAULTS: Final[Mapping[int, Fault]] = {
    signal.SIGABRT: Fault("EXC_CRASH", 6, "Abort trap: 6"),
    signal.SIGBUS: Fault("EXC_BAD_ACCESS", 10, "Bus error: 10"),
    signal.SIGFPE: Fault("EXC_ARITHMETIC", 8, "Floating point exception: 8"),
    signal.SIGILL: Fault("EXC_BAD_INSTRUCTION", 4, "Illegal instruction: 4"),
    signal.SIGSEGV: Fault("EXC_BAD_ACCESS", 11, "Segmentation fault: 11"),
    signal.SIGTRAP: Fault("EXC_BREAKPOINT", 5, "Trace/BPT trap: 5"),
}


@dataclass(frozen=True, slots=True)
class Termination:
    """A kill by iOS for a reason that stands in a crash report."""

    code: int
    explanation: str
    event: str | None = None  # of the watchdog: scene-create, scene-update, process-exit
    thermal: ThermalLevel = ThermalLevel.NOMINAL

    def reasons(self) -> list[str]:
        """Return the lines of the report."""
        about = f"domain:{_WATCHDOG_DOMAIN} code:0x{self.code:08X} explanation:{self.explanation}"
        lines = [
            f"<RBSTerminateContext| {about}",
            "ProcessVisibility: Foreground",
            "ProcessState: Running",
        ]
        if self.event is not None:
            lines.append(f"WatchdogEvent: {self.event}")
        return [
            *lines,
            "ThermalInfo: (",
            f'"Thermal Level:   {_LEVEL_NUMBERS[self.thermal]}"',
            f'"Thermal State:   {self.thermal}"',
            ")",
            ") reportType:CrashLog maxTerminationResistance:Interactive>",
        ]


def watchdog(bundle_id: str, pid: int, event: str, allowance_s: float) -> Termination:
    """Return the watchdog's kill of an app that took too long for an event."""
    text = (
        f"{event} watchdog transgression: app<{bundle_id}>:{pid} exhausted real (wall clock)"
        f" time allowance of {allowance_s:.2f} seconds"
    )
    return Termination(WATCHDOG_CODE, text, event)


def too_hot(bundle_id: str, pid: int) -> Termination:
    """Return the kill of an app because the phone has to cool off."""
    text = f"app<{bundle_id}>:{pid} was terminated to let the device cool off"
    return Termination(THERMAL_CODE, text, thermal=ThermalLevel.CRITICAL)


def cause_of_signal(number: int, name: str, pid: int) -> dict[str, object]:
    """Return the part of a report that tells a fault, by the host's number of its signal."""
    fault = FAULTS[number]
    return {
        "exception": {
            "type": fault.exception,
            "signal": signal.Signals(number).name,
            "codes": "0x0000000000000000, 0x0000000000000000",
            "rawCodes": [0, 0],
        },
        "termination": {
            "flags": 0,
            "namespace": "SIGNAL",
            "code": fault.number,
            "indicator": fault.indicator,
            "byProc": name,
            "byPid": pid,
        },
    }


def cause_of_termination(termination: Termination) -> dict[str, object]:
    """Return the part of a report that tells a termination."""
    return {
        "exception": {
            "type": "EXC_CRASH",
            "signal": "SIGKILL",
            "codes": "0x0000000000000000, 0x0000000000000000",
            "rawCodes": [0, 0],
        },
        "termination": {
            "flags": _FLAGS,
            "namespace": "FRONTBOARD",
            "code": termination.code,
            "reasons": termination.reasons(),
        },
    }
