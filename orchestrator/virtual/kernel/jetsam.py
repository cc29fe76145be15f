"""JetsamEvent reports (bug type 298) in the form of iOS 18 and later.

Pure: values in, text out. Field names and types follow published reports; quantities that only a
real phone has (zone sizes, compressor counts) are fixed, and `kernel` says whose report it is.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final
from uuid import NAMESPACE_DNS, uuid5

if TYPE_CHECKING:
    from datetime import datetime

    from orchestrator.virtual.kernel.values import KernelFacts

PAGE_BYTES: Final = 16384  # of every iPhone since the 6s, whatever the host has
NAME_LIMIT_BYTES: Final = 32  # MAXCOMLEN of current reports; older ones cut at 16

_FOREGROUND_PRIORITY: Final = 100
_BACKGROUND_PRIORITY: Final = 40


class KillReason(StrEnum):
    """Why the kernel killed a process (XNU `memstat_kill_cause_name`)."""

    PER_PROCESS_LIMIT = "per-process-limit"
    VM_PAGE_SHORTAGE = "vm-pageshortage"


@dataclass(frozen=True, slots=True)
class Victim:
    """The process that was killed."""

    name: str
    pid: int
    uuid: str  # of the executable
    age_s: float
    cpu_time_s: float
    frontmost: bool
    suspended: bool

    @property
    def states(self) -> list[str]:
        """Return the states as a report lists them."""
        if self.frontmost:
            return ["frontmost"]
        return ["suspended"] if self.suspended else ["background"]


@dataclass(frozen=True, slots=True)
class _Resident:
    """A process of iOS itself, so that the victim is not alone in the list."""

    name: str
    pid: int
    pages: int
    priority: int
    states: tuple[str, ...]


_RESIDENTS: Final = (
    _Resident("kernel_task", 0, 61_443, 0, ()),
    _Resident("launchd", 1, 1_180, 190, ("daemon",)),
    _Resident("runningboardd", 33, 912, 180, ("daemon",)),
    _Resident("SpringBoard", 34, 14_336, 160, ("frontmost",)),
    _Resident("backboardd", 66, 4_608, 170, ("daemon", "active")),
    _Resident("locationd", 70, 1_536, 110, ("daemon", "active")),
    _Resident("osanalyticshelper", 77, 420, 40, ("daemon",)),
    _Resident("mediaserverd", 81, 2_304, 120, ("daemon",)),
    _Resident("assetsd", 88, 1_792, 0, ("daemon", "idle")),
)


def jetsam_report(
    facts: KernelFacts,
    victim: Victim,
    *,
    reason: KillReason,
    footprint_bytes: int,
    incident: str,
    when: datetime,
) -> str:
    """Return the text of one report.

    `largestProcess` is the largest survivor, as it may be on a phone: a reader that takes it for
    the victim is wrong here too.

    Args:
        facts: The phone.
        victim: Who was killed.
        reason: Why.
        footprint_bytes: Phone bytes at the kill: for the per-process limit the limit itself.
        incident: Upper-case UUID of the report.
        when: Time of the kill with its offset from UTC.
    """
    header = {
        "bug_type": "298",
        "timestamp": timestamp(when),
        "os_version": os_version(facts),
        "roots_installed": 0,
        "incident_id": incident,
    }
    residents = [each for each in _RESIDENTS if each.pid != victim.pid]
    body = {
        "build": os_version(facts),
        "product": facts.model.product_type,
        "kernel": "Darwin Kernel Version 0.0.0: virtual iPhone",
        "incident": incident,
        "crashReporterKey": reporter_key(facts),
        "date": timestamp(when),
        "codeSigningMonitor": 2,
        "bug_type": "298",
        "timeDelta": 7,
        "memoryStatus": _memory_status(facts, footprint_bytes),
        "genCounter": 0,
        "processes": [
            _victim_entry(victim, reason, footprint_bytes),
            *(_resident_entry(each, facts, when) for each in residents),
        ],
        "largestProcess": max(residents, key=lambda each: each.pages).name,
    }
    return f"{json.dumps(header)}\n{json.dumps(body, indent=2)}"


def jetsam_stem(when: datetime) -> str:
    """Return the file name of a report without its `.ips`."""
    return f"JetsamEvent-{when:%Y-%m-%d-%H%M%S}"


def timestamp(when: datetime, fraction_digits: int = 2) -> str:
    """Return a time as reports write it, `2026-05-28 01:35:47.63 -0500`."""
    fraction = f"{when.microsecond:06d}"[:fraction_digits]
    return f"{when:%Y-%m-%d %H:%M:%S}.{fraction} {when:%z}"


def os_version(facts: KernelFacts) -> str:
    """Return the system as reports write it, `iPhone OS 18.5 (22F76)`."""
    return f"iPhone OS {facts.os} ({facts.build})"


def reporter_key(facts: KernelFacts) -> str:
    """Return the phone's anonymous key: 40 hex digits, the same in all of its reports."""
    return hashlib.sha256(facts.udid.encode()).hexdigest()[:40]


def cut_name(name: str) -> str:
    """Return a process name as the kernel holds it: 32 bytes, never half a character."""
    return name.encode()[:NAME_LIMIT_BYTES].decode(errors="ignore")


def _memory_status(facts: KernelFacts, footprint_bytes: int) -> dict[str, object]:
    total_pages = facts.model.physical_memory_bytes // PAGE_BYTES
    wired, free = total_pages // 7, total_pages // 90
    rest = max(0, total_pages - wired - free - footprint_bytes // PAGE_BYTES)
    return {
        "compressorSize": 28_754,
        "compressions": 0,
        "decompressions": 0,
        "zoneMapCap": 2_203_631_616,
        "zoneMapSize": 402_653_184,
        "largestZone": "APFS_4K_OBJS",
        "largestZoneSize": 34_013_184,
        "uncompressed": 71_300,
        "memoryPages": {
            "active": rest // 2,
            "inactive": rest - rest // 2,
            "wired": wired,
            "free": free,
            "anonymous": rest // 2 + footprint_bytes // PAGE_BYTES,
            "fileBacked": rest - rest // 2,
            "speculative": 888,
            "throttled": 0,
            "purgeable": 0,
        },
        "pageSize": PAGE_BYTES,
    }


def _victim_entry(victim: Victim, reason: KillReason, footprint_bytes: int) -> dict[str, object]:
    entry = _entry(
        cut_name(victim.name),
        victim.pid,
        victim.uuid,
        footprint_bytes // PAGE_BYTES,
        _FOREGROUND_PRIORITY if victim.frontmost else _BACKGROUND_PRIORITY,
        age_s=victim.age_s,
        cpu_time_s=victim.cpu_time_s,
    )
    killed = {"reason": reason.value, "killDelta": 1000, "genCount": 0}
    return entry | {"states": victim.states} | killed


def _resident_entry(each: _Resident, facts: KernelFacts, when: datetime) -> dict[str, object]:
    up_s = max(0.0, when.timestamp() - facts.boot_time_s)
    uuid = str(uuid5(NAMESPACE_DNS, f"{each.name}.{facts.build}"))
    entry = _entry(each.name, each.pid, uuid, each.pages, each.priority, age_s=up_s, cpu_time_s=1.5)
    return entry | {"states": list(each.states)}


def _entry(
    name: str,
    pid: int,
    uuid: str,
    pages: int,
    priority: int,
    *,
    age_s: float,
    cpu_time_s: float,
) -> dict[str, object]:
    return {
        "uuid": uuid,
        "states": [],
        "purgeable": 0,
        "age": round(age_s * 1e9),
        "fds": 50,
        "coalition": pid,
        "rpages": pages,
        "priority": priority,
        "physicalPages": {"internal": [pages, 0]},
        "pid": pid,
        "cpuTime": round(cpu_time_s, 6),
        "name": name,
        "lifetimeMax": pages,
        "csFlags": 570_434_305,
        "csTrustLevel": 8,
        "mem_regions": 50,
        "freeze_skip_reason:": "none",  # the second colon is Apple's
    }
