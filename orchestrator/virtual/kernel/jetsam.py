"""JetsamEvent reports (bug type 298) in the forms of iOS 18 and iOS 26.

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

from orchestrator.domain.iphone import os_version as version_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from orchestrator.virtual.kernel.residents import SystemProcess
    from orchestrator.virtual.kernel.values import KernelFacts

PAGE_BYTES: Final = 16384  # of every iPhone since the 6s, whatever the host has
NAME_LIMIT_BYTES: Final = 32  # MAXCOMLEN of current reports; older ones cut at 16

FOREGROUND_PRIORITY: Final = 100
BACKGROUND_PRIORITY: Final = 40
_IOS_26: Final = (26,)


class KillReason(StrEnum):
    """Why the kernel killed a process (XNU `memstat_kill_cause_name`)."""

    PER_PROCESS_LIMIT = "per-process-limit"
    VM_PAGE_SHORTAGE = "vm-pageshortage"


@dataclass(frozen=True, slots=True)
class Row:
    """One process of the list; one with a reason was killed."""

    name: str
    pid: int
    uuid: str  # of the executable
    pages: int
    priority: int
    states: tuple[str, ...]
    age_s: float
    cpu_time_s: float
    reason: KillReason | None = None


def app_states(*, frontmost: bool, suspended: bool) -> tuple[str, ...]:
    """Return the states of an app as a report lists them."""
    if frontmost:
        return ("frontmost",)
    return ("suspended",) if suspended else ("background",)


def system_row(
    process: SystemProcess, facts: KernelFacts, now_s: float, reason: KillReason | None = None
) -> Row:
    """Return the row of a process of iOS."""
    uuid = str(uuid5(NAMESPACE_DNS, f"{process.name}.{facts.build}"))
    return Row(
        cut_name(process.name),
        process.pid,
        uuid,
        process.pages,
        process.priority,
        process.states,
        age_s=max(0.0, now_s - process.started_s),
        cpu_time_s=1.5,
        reason=reason,
    )


def jetsam_report(facts: KernelFacts, rows: Sequence[Row], *, incident: str, when: datetime) -> str:
    """Return the text of one report.

    `largestProcess` is the largest survivor, as it may be on a phone: a reader that takes it for
    the victim is wrong here too.

    Args:
        facts: The phone.
        rows: What ran, the victims included.
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
    is_new = version_of(facts.os) >= _IOS_26
    body = _identity(facts, incident, when) | {
        "timeDelta": 7,
        "memoryStatus": _memory_status(facts, rows),
        "genCounter": 0,
        "processes": [_entry(row, is_new=is_new) for row in rows],
        "largestProcess": max(_survivors(rows), key=lambda row: row.pages).name,
    }
    if is_new:
        body |= {
            "appleIntelligenceStatus": {"state": "unavailable"},
            "eventReason": "",
            "eventCode": 0,
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


def _survivors(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.reason is None] or list(rows)


def _identity(facts: KernelFacts, incident: str, when: datetime) -> dict[str, object]:
    return {
        "build": os_version(facts),
        "product": facts.model.product_type,
        "kernel": "Darwin Kernel Version 0.0.0: virtual iPhone",
        "incident": incident,
        "crashReporterKey": reporter_key(facts),
        "date": timestamp(when),
        "codeSigningMonitor": 2,
        "bug_type": "298",
    }


def _memory_status(facts: KernelFacts, rows: Sequence[Row]) -> dict[str, object]:
    total_pages = facts.model.physical_memory_bytes // PAGE_BYTES
    killed_pages = sum(row.pages for row in rows if row.reason is not None)
    wired, free = total_pages // 7, total_pages // 90
    rest = max(0, total_pages - wired - free - killed_pages)
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
            "anonymous": rest // 2 + killed_pages,
            "fileBacked": rest - rest // 2,
            "speculative": 888,
            "throttled": 0,
            "purgeable": 0,
        },
        "pageSize": PAGE_BYTES,
    }


def _entry(row: Row, *, is_new: bool) -> dict[str, object]:
    physical: dict[str, object] = {"internal": [row.pages, 0]}
    entry: dict[str, object] = {
        "uuid": row.uuid,
        "states": list(row.states),
        "purgeable": 0,
        "age": round(row.age_s * 1e9),
        "fds": 50,
        "coalition": row.pid,
        "rpages": row.pages,
        "priority": row.priority,
        # iOS 26 counts pages of frozen apps apart
        "physicalPages": physical | ({"frozen_to_swap_pages": 0} if is_new else {}),
        "pid": row.pid,
        "cpuTime": round(row.cpu_time_s, 6),
        "name": cut_name(row.name),
        "lifetimeMax": row.pages,
        "csFlags": 570_434_305,
        "csTrustLevel": 8,
        "mem_regions": 50,
        "freeze_skip_reason:": "none",  # the second colon is Apple's
    }
    if "idle" in row.states:
        entry["idleDelta"] = 30_000
    if row.reason is not None:
        entry |= {"reason": row.reason.value, "killDelta": 1000, "genCount": 0}
    return entry
