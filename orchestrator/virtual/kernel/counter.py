"""What a process uses, as the host counts it: dirty memory and CPU time.

The app counts its own memory in the same way (docs/protocol.md, section 1), so that phone and app
never disagree about the distance to the limit.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from typing import Protocol


class Counter(Protocol):
    """Reads one process. Close it when the process is gone."""

    def footprint_bytes(self) -> int | None:
        """Return dirty memory in host bytes, None for a process that is gone."""

    def cpu_time_s(self) -> float | None:
        """Return CPU time of all threads, ended ones too, None for a process that is gone."""

    def close(self) -> None:
        """Free what the counter holds."""


class LinuxCounter:
    """Counts by `/proc/PID/statm`, whose file stays open: 3 microseconds per reading.

    Resident less shared pages is dirty anonymous memory. `smaps_rollup` would be exact, but takes
    10 to 20 microseconds per MB and holds the lock that the process needs to map memory.

    Pages in the host's swap are not counted, and no process can keep another's out of it: a host
    for virtual phones should have memory to spare, or no swap.
    """

    def __init__(self, pid: int) -> None:
        self._fd = os.open(f"/proc/{pid}/statm", os.O_RDONLY)
        # CPUCLOCK_SCHED of the whole process, as clock_getcpuclockid(3) builds it.
        self._clock = (~pid << 3) | 2

    def footprint_bytes(self) -> int | None:
        """Return resident less shared memory in host bytes, None for a process that is gone."""
        try:
            _, resident, shared, *_ = os.pread(self._fd, 128, 0).split()
        except (OSError, ValueError):
            return None
        pages = int(resident) - int(shared)
        return pages * _PAGE_BYTES if pages > 0 else None  # a zombie has none

    def cpu_time_s(self) -> float | None:
        """Return the process clock, which does not miss threads that wake for microseconds."""
        try:
            return time.clock_gettime(self._clock)
        except OSError:
            return None

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


class _RusageInfoV0(ctypes.Structure):
    """`struct rusage_info_v0` of <sys/resource.h>."""

    _fields_ = (
        ("uuid", ctypes.c_uint8 * 16),
        *((name, ctypes.c_uint64) for name in ("user_time", "system_time")),
        *((name, ctypes.c_uint64) for name in ("idle_wakeups", "interrupt_wakeups", "pageins")),
        *((name, ctypes.c_uint64) for name in ("wired", "resident", "phys_footprint")),
        *((name, ctypes.c_uint64) for name in ("start_abstime", "exit_abstime")),
    )


class _Timebase(ctypes.Structure):
    """`struct mach_timebase_info`."""

    _fields_ = (("numerator", ctypes.c_uint32), ("denominator", ctypes.c_uint32))


class MacCounter:
    """Counts by `proc_pid_rusage` of libproc. From its header; not run."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._libc = ctypes.CDLL(None, use_errno=True)
        timebase = _Timebase()
        self._libc.mach_timebase_info(ctypes.byref(timebase))
        self._tick_s = timebase.numerator / timebase.denominator / 1e9

    def footprint_bytes(self) -> int | None:
        """Return `ri_phys_footprint`, None for a process that is gone."""
        usage = self._usage()
        return usage.phys_footprint if usage else None

    def cpu_time_s(self) -> float | None:
        """Return user and system time, which Apple silicon counts in ticks of the timebase."""
        usage = self._usage()
        return (usage.user_time + usage.system_time) * self._tick_s if usage else None

    def close(self) -> None:
        """Free nothing: there is no handle."""

    def _usage(self) -> _RusageInfoV0 | None:
        usage = _RusageInfoV0()
        failed = self._libc.proc_pid_rusage(self._pid, 0, ctypes.byref(usage))
        return None if failed else usage


def counter_of(pid: int) -> Counter | None:
    """Return the counter for a process, None if it is gone already."""
    if sys.platform == "darwin":
        return MacCounter(pid)
    try:
        return LinuxCounter(pid)
    except OSError:
        return None


_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PR_SET_THP_DISABLE = 41  # <linux/prctl.h>


def refuse_huge_pages() -> None:
    """Make this process and every child it starts from now on live without huge pages.

    One touch of a huge page adds 2 MB, 64 MB on a phone at scale 32, between two samples: such an
    app would pass the limit unseen. The setting is inherited over fork and exec (prctl(2)), so an
    app has it before its first instruction. Where prctl or huge pages are missing nothing happens.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)
