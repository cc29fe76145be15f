"""Values at the border of the kernel model: what it is told, and what it tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from orchestrator.domain.iphone import MIB

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.domain.iphone import IPhoneModel


@dataclass(frozen=True, slots=True)
class InstalledApp:
    """One app as the installer left it."""

    bundle_id: str
    name: str  # CFBundleExecutable
    executable: Path  # on the host
    sandbox: Path  # the app's container: HOME and working directory
    version: str
    build: str


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What one virtual phone is, as far as its kernel cares."""

    model: IPhoneModel
    udid: str
    os: str  # "18.5"
    build: str  # "22F76"
    memory_scale: int  # phone bytes per host byte
    port_folder: Path  # short: an app's socket is `<port>.sock` in it
    crash_folder: Path  # what com.apple.crashreportcopymobile serves
    entitled: bool  # increased-memory-limit
    boot_time_s: float  # Unix time

    @property
    def limit_bytes(self) -> int:
        """Return the per-process limit in phone bytes."""
        mib = self.model.entitled_limit_mib if self.entitled else self.model.limit_mib
        return mib * MIB

    @property
    def host_limit_bytes(self) -> int:
        """Return the per-process limit in bytes of the host."""
        return self.limit_bytes // self.memory_scale


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line for os_trace and syslog; `text` may come from an app and is then hostile."""

    pid: int
    process: str
    image: str
    text: str


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """One running app."""

    pid: int
    name: str
    bundle_id: str
    executable: Path
    started_s: float  # Unix time


@dataclass(frozen=True, slots=True)
class MemoryEvent:
    """What the memory sampler did to an app, for the phone's own event log.

    A JetsamEvent states the limit, as on a phone, which dies exactly there; the footprint that was
    really seen, and how late the sampler was, stand here.
    """

    kind: Literal["warning", "kill"]
    pid: int
    name: str
    footprint_bytes: int  # phone bytes; of a kill, the highest that was seen
    limit_bytes: int  # phone bytes
    lag_s: float  # how much later than planned the deciding sample was taken
    report: str | None = None  # file name of the report, None where none was written

    @property
    def overshoot_bytes(self) -> int:
        """Return how far past the limit the app was seen, in phone bytes, at least 0."""
        return max(0, self.footprint_bytes - self.limit_bytes)


AppChangeKind = Literal[
    "launched", "foreground", "background", "suspended", "memory_warning", "ended"
]


@dataclass(frozen=True, slots=True)
class AppChange:
    """What has just become of an app."""

    kind: AppChangeKind
    pid: int
    name: str
    bundle_id: str
    executable: str
    exit_code: int | None = None  # of one that ended
    signal: int | None = None  # by the host's number


class ProcessListener(Protocol):
    """Who wants to know about one process. Called in the kernel's event loop."""

    def output(self, pid: int, line: str) -> None:
        """Take one line of stdout or stderr, without its newline."""

    def exited(self, pid: int, exit_code: int | None, signal: int | None) -> None:
        """Take the end: an exit code, or the host's number of the signal that ended it."""
