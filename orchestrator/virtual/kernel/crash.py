"""Crash reports (bug type 309) of apps that a fault of their own ended.

Pure: values in, text out. The host's addresses mean nothing on a phone, so the faulting thread has
one frame at the start of the executable and empty registers.
"""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.kernel.jetsam import os_version, reporter_key, timestamp

if TYPE_CHECKING:
    from datetime import datetime

    from orchestrator.virtual.kernel.values import InstalledApp, KernelFacts


@dataclass(frozen=True, slots=True)
class _Fault:
    """How a report names one signal."""

    exception: str
    number: int  # Darwin's, which is not always the host's
    indicator: str


_FAULTS: Final = {
    signal.SIGABRT: _Fault("EXC_CRASH", 6, "Abort trap: 6"),
    signal.SIGBUS: _Fault("EXC_BAD_ACCESS", 10, "Bus error: 10"),
    signal.SIGFPE: _Fault("EXC_ARITHMETIC", 8, "Floating point exception: 8"),
    signal.SIGILL: _Fault("EXC_BAD_INSTRUCTION", 4, "Illegal instruction: 4"),
    signal.SIGSEGV: _Fault("EXC_BAD_ACCESS", 11, "Segmentation fault: 11"),
    signal.SIGTRAP: _Fault("EXC_BREAKPOINT", 5, "Trace/BPT trap: 5"),
}

_IMAGE_BASE: Final = 4_294_967_296
_POINTER_REGISTERS: Final = ("lr", "cpsr", "fp", "sp", "esr", "pc", "far")


@dataclass(frozen=True, slots=True)
class Crashed:
    """The process that crashed."""

    app: InstalledApp
    pid: int
    uuid: str  # of the executable
    path: str  # on the phone
    started: datetime
    frontmost: bool
    signal: int  # the host's number
    last_line: str  # of its output, hostile


def is_crash(number: int) -> bool:
    """Return whether a signal, by the host's number, leaves a crash report."""
    return number in _FAULTS


def crash_report(facts: KernelFacts, crashed: Crashed, *, incident: str, when: datetime) -> str:
    """Return the text of one report.

    Args:
        facts: The phone.
        crashed: Who ended, by a signal of which `is_crash` is true.
        incident: Upper-case UUID of the report.
        when: Time of the crash with its offset from UTC.
    """
    header = _header(facts, crashed, incident, when)
    body = _process(facts, crashed, incident, when) | _cause(crashed) | _threads(crashed)
    return f"{json.dumps(header)}\n{json.dumps(body, indent=2)}"


def crash_stem(name: str, when: datetime) -> str:
    """Return the file name of a report without its `.ips`."""
    return f"{name}-{when:%Y-%m-%d-%H%M%S}"


def _header(
    facts: KernelFacts, crashed: Crashed, incident: str, when: datetime
) -> dict[str, object]:
    app = crashed.app
    return {
        "app_name": app.name,
        "timestamp": timestamp(when),
        "app_version": app.version,
        "slice_uuid": crashed.uuid,
        "build_version": app.build,
        "platform": 2,
        "bundleID": app.bundle_id,
        "share_with_app_devs": 0,
        "is_first_party": 0,
        "bug_type": "309",
        "os_version": os_version(facts),
        "roots_installed": 0,
        "name": app.name,
        "incident_id": incident,
    }


def _process(
    facts: KernelFacts, crashed: Crashed, incident: str, when: datetime
) -> dict[str, object]:
    app = crashed.app
    return {
        "uptime": max(0, round(when.timestamp() - facts.boot_time_s)),
        "procRole": "Foreground" if crashed.frontmost else "Background",
        "version": 2,
        "userID": 501,
        "deployVersion": 210,
        "modelCode": facts.model.product_type,
        "osVersion": {
            "isEmbedded": True,
            "train": f"iPhone OS {facts.os}",
            "releaseType": "User",
            "build": facts.build,
        },
        "captureTime": timestamp(when, 4),
        "procLaunch": timestamp(crashed.started, 4),
        "incident": incident,
        "crashReporterKey": reporter_key(facts),
        "pid": crashed.pid,
        "cpuType": "ARM-64",
        "bug_type": "309",
        "procName": app.name,
        "procPath": crashed.path,
        "bundleInfo": {
            "CFBundleIdentifier": app.bundle_id,
            "CFBundleShortVersionString": app.version,
            "CFBundleVersion": app.build,
        },
        "parentProc": "launchd",
        "parentPid": 1,
    }


def _cause(crashed: Crashed) -> dict[str, object]:
    fault = _FAULTS[signal.Signals(crashed.signal)]
    cause: dict[str, object] = {
        "exception": {
            "type": fault.exception,
            "signal": signal.Signals(crashed.signal).name,
            "codes": "0x0000000000000000, 0x0000000000000000",
            "rawCodes": [0, 0],
        },
        "termination": {
            "flags": 0,
            "namespace": "SIGNAL",
            "code": fault.number,
            "indicator": fault.indicator,
            "byProc": crashed.app.name,
            "byPid": crashed.pid,
        },
    }
    # Swift writes why it trapped to stderr; a phone puts that line here.
    if "Fatal error" in crashed.last_line:
        cause["asi"] = {"libswiftCore.dylib": [crashed.last_line]}
    return cause


def _threads(crashed: Crashed) -> dict[str, object]:
    registers: dict[str, object] = {name: {"value": 0} for name in _POINTER_REGISTERS}
    state = {"flavor": "ARM_THREAD_STATE64", "x": [{"value": 0} for _ in range(29)]} | registers
    thread = {
        "triggered": True,
        "id": crashed.pid,
        "threadState": state,
        "frames": [{"imageOffset": 0, "imageIndex": 0}],
    }
    image = {
        "source": "P",
        "arch": "arm64",
        "base": _IMAGE_BASE,
        "size": 16384,
        "uuid": crashed.uuid,
        "path": crashed.path,
        "name": crashed.app.name,
        "CFBundleIdentifier": crashed.app.bundle_id,
    }
    return {"faultingThread": 0, "threads": [thread], "usedImages": [image]}
