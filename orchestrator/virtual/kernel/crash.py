"""Crash reports (bug type 309): of apps that a fault ended, and of those that iOS terminated.

Pure: values in, text out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.virtual.kernel.causes import (
    FAULTS,
    Termination,
    cause_of_signal,
    cause_of_termination,
)
from orchestrator.virtual.kernel.jetsam import os_version, reporter_key, timestamp
from orchestrator.virtual.kernel.stacks import MainImage, stacks

if TYPE_CHECKING:
    from datetime import datetime

    from orchestrator.virtual.kernel.values import InstalledApp, KernelFacts


@dataclass(frozen=True, slots=True)
class Crashed:
    """The process that crashed."""

    app: InstalledApp
    pid: int
    uuid: str  # of the executable
    path: str  # on the phone
    started: datetime
    frontmost: bool
    cause: int | Termination  # the host's number of a signal, or why iOS ended it
    last_line: str  # of its output, hostile


def is_crash(number: int) -> bool:
    """Return whether a signal, by the host's number, leaves a crash report."""
    return number in FAULTS


def crash_report(facts: KernelFacts, crashed: Crashed, *, incident: str, when: datetime) -> str:
    """Return the text of one report.

    Args:
        facts: The phone.
        crashed: Who ended; a signal as its cause is one of which `is_crash` is true.
        incident: Upper-case UUID of the report.
        when: Time of the crash with its offset from UTC.
    """
    header = _header(facts, crashed, incident, when)
    image = MainImage(crashed.app.name, crashed.app.bundle_id, crashed.uuid, crashed.path)
    body = _process(facts, crashed, incident, when) | _cause(crashed)
    body |= stacks(image, crashed.pid, facts.build)
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
        "coalitionID": crashed.pid,
        "coalitionName": app.bundle_id,
        "isLocked": 0 if crashed.frontmost else 1,
        "wasUnlockedSinceBoot": 1,
    }


def _cause(crashed: Crashed) -> dict[str, object]:
    if isinstance(crashed.cause, Termination):
        return cause_of_termination(crashed.cause)
    cause = cause_of_signal(crashed.cause, crashed.app.name, crashed.pid)
    # Swift writes why it trapped to stderr; a phone puts that line here.
    if "Fatal error" in crashed.last_line:
        cause["asi"] = {"libswiftCore.dylib": [crashed.last_line]}
    return cause
