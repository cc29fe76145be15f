"""Typed diagnostic reports of iOS. Bytes are phone bytes; absent facts are None.

Source of the bug types: OSAnalytics `submissionConfig.plist`, as listed by blacktop/ipsw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestrator.evidence.frames import Backtrace
    from orchestrator.evidence.times import ReportTime

WATCHDOG_CODE: Final = 0x8BADF00D  # "ate bad food", Apple: SIGKILL termination codes
THERMAL_CODE: Final = 0xC00010FF  # "cool off"

JETSAM_TYPES: Final = frozenset({"298"})
CRASH_TYPES: Final = frozenset({"309", "109"})  # 309: JSON body from iOS 15, 109: text body
EXC_RESOURCE_TYPES: Final = frozenset({"385", "185"})
USAGE_TYPES: Final = frozenset({"202", "206", "142", "145"})  # CPU, CPU fatal, wakeups, disk writes
PANIC_TYPES: Final = frozenset({"210", "151", "115"})  # panic, forced reset, reset counter

# What other types are called. None of them ends the app: a soak on the CPU trips 202 by itself,
# 308 (OSFault) looks like a crash and is none.
OTHER_NAMES: Final = {
    "142": "wakeups-resource",
    "145": "diskwrites-resource",
    "202": "cpu-resource",
    "206": "cpu-resource-fatal",
    "211": "core-analytics",
    "288": "stackshot",
    "308": "os-fault",
    "313": "siri",
    "409": "system-watchdog",
    "509": "terminating-stackshot",
}


@dataclass(frozen=True, slots=True)
class ReadingNotes:
    """What was unusual about the file, short of being unreadable."""

    decode_errors: int = 0  # byte sequences that are not text, replaced
    trailing_ignored: bool = False  # something that belongs to no report follows this one


@dataclass(frozen=True, slots=True)
class ReportHeader:
    """What every report tells, readable body or not."""

    file: str  # where the raw report lies, as the caller names it
    bug_type: str | None
    time: ReportTime | None
    incident: str | None  # unique per event; copies of a report share it
    name: str | None  # the process a crash is about; jetsam headers have none
    uuid: str | None  # `slice_uuid`, the LC_UUID of that process
    product: str | None = None  # ProductType of the phone that wrote it
    ignored: str | None = None  # why it is not about an iPhone: a companion's, a simulator's
    notes: ReadingNotes = ReadingNotes()


@dataclass(frozen=True, slots=True)
class JetsamVictim:
    """A process that was killed: an entry of the process list that has a reason."""

    name: str | None  # cut by the kernel to 16 or 32 bytes
    pid: int | None
    uuid: str | None
    reason: str  # `per-process-limit`, `vm-pageshortage`, ...; unknown ones are kept
    resident_pages: int | None
    footprint_bytes: int | None  # pages by this report's own page size
    states: tuple[str, ...] | None  # `frontmost`, `suspended`, ...
    kill_delta: int | None  # order of the kills

    @property
    def foreground(self) -> bool | None:
        """Whether the process was in front; None where the report lists no states."""
        return None if self.states is None else not {"frontmost", "active"}.isdisjoint(self.states)


@dataclass(frozen=True, slots=True)
class JetsamReport:
    """A JetsamEvent: a snapshot of all processes around one or more kills."""

    header: ReportHeader
    victims: tuple[JetsamVictim, ...]  # in the order of the kills
    victim_count: int  # larger than the tuple only in a report that was made to hurt
    page_size_bytes: int
    page_size_assumed: bool  # the report had none
    largest_process: str | None  # information only: very often *not* the victim
    damaged_entries: int  # of the process list


@dataclass(frozen=True, slots=True)
class CrashReport:
    """The end of one process that the system wrote a crash report for."""

    header: ReportHeader
    pid: int | None
    exception: str | None  # `EXC_BREAKPOINT`
    signal: str | None  # `SIGTRAP`
    namespace: str | None  # of the termination: `FRONTBOARD`, `RUNNINGBOARD`, ...
    code: int | None  # of the termination
    message: str | None  # what the process printed last: Swift's fatal error, or a subtype
    foreground: bool | None
    watchdog_event: str | None  # `scene-create`, `process-exit`
    thermal_state: str | None
    thermal_level: int | None = None
    fatal: bool = True  # some reports in this form tell of a process that went on
    backtrace: Backtrace | None = None  # of the thread that crashed

    @property
    def watchdog(self) -> bool:
        """Whether the system's watchdog ended the process."""
        return self.code == WATCHDOG_CODE

    @property
    def thermal(self) -> bool:
        """Whether the system ended the process because the phone was too hot."""
        return self.code == THERMAL_CODE

    @property
    def stopped_too_slowly(self) -> bool:
        """Whether the watchdog fired because the process did not quit when it was told to.

        The host's own stop ends like this too, so it is no hang of the soak.
        """
        return self.watchdog and self.watchdog_event == "process-exit"

    @property
    def reason(self) -> str | None:
        """Why the process ended: a termination code that has a name, else the signal."""
        if self.thermal:
            return "thermal"
        if self.watchdog:
            return f"watchdog {self.watchdog_event or '0x8badf00d'}"
        return self.signal or self.exception or self.namespace


@dataclass(frozen=True, slots=True)
class ExcResourceReport:
    """A resource limit was passed.

    Apple: such a report alone does not mean that the process was ended.
    """

    header: ReportHeader
    pid: int | None
    resource: str | None  # `MEMORY`, `CPU`, ...
    limit_mib: int | None  # printed as "MB" by the kernel
    message: str | None
    fatal: bool  # the report also holds a termination


@dataclass(frozen=True, slots=True)
class UsageReport:
    """CPU time, wakeups or disk writes beyond what the system finds polite."""

    header: ReportHeader
    pid: int | None
    event: str | None  # `cpu usage`, `wakeups`, `disk writes`
    message: str | None  # the usage and its limit, as printed
    fatal: bool  # the process was ended for it

    @property
    def name(self) -> str:
        """What the type is called."""
        return OTHER_NAMES[self.header.bug_type or ""]


@dataclass(frozen=True, slots=True)
class PanicReport:
    """The phone restarted: a kernel panic or a forced reset."""

    header: ReportHeader
    first_line: str | None
    damage: str | None = None  # why the body could not be read; the restart is certain anyway


@dataclass(frozen=True, slots=True)
class OtherReport:
    """A report of a type that decides nothing here, known or not."""

    header: ReportHeader
    bug_type: str

    @property
    def name(self) -> str:
        """What the type is called, or `bug type <n>`."""
        return OTHER_NAMES.get(self.bug_type, f"bug type {self.bug_type}")


@dataclass(frozen=True, slots=True)
class Unparsed:
    """A report that cannot be read; the raw file stays where it is."""

    header: ReportHeader  # what little was readable
    reason: str  # `empty`, `no body`, `truncated`, ...


ParsedReport = (
    JetsamReport
    | CrashReport
    | ExcResourceReport
    | UsageReport
    | PanicReport
    | OtherReport
    | Unparsed
)
