"""Mapped memory and the counters of it.

Everything large is mapped and unmapped: a freed `malloc` block need not lower the footprint.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from dataclasses import dataclass
from typing import Final

PAGE_BYTES: Final = mmap.PAGESIZE


class Region:
    """Private anonymous memory in whole pages, dirty only where it was touched."""

    def __init__(self, size_bytes: int) -> None:
        """Map memory without touching it.

        Raises:
            OSError: If the mapping is refused.
        """
        self.size_bytes = -(-max(1, size_bytes) // PAGE_BYTES) * PAGE_BYTES
        # Python's default is a shared mapping, which the footprint would not count.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.bytes = mmap.mmap(-1, self.size_bytes, flags=flags)
        self.touched_bytes = 0

    def touch(self, up_to_bytes: int) -> None:
        """Make every page dirty that begins before `up_to_bytes`; never takes one back."""
        end = min(up_to_bytes, self.size_bytes)
        for offset in range(self.touched_bytes, end, PAGE_BYTES):
            self.bytes[offset] = 1
            self.touched_bytes = offset + PAGE_BYTES

    def release(self) -> None:
        """Unmap the memory."""
        self.touched_bytes = 0
        self.bytes.close()


def touched_region(size_bytes: int) -> Region:
    """Return mapped memory with every page dirty."""
    region = Region(size_bytes)
    region.touch(region.size_bytes)
    return region


class _LinuxCounter:
    """`(resident - shared)` of statm: 3 us and within 12 kB of smaps_rollup."""

    def __init__(self) -> None:
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)

    def host_bytes(self) -> int:
        _, resident, shared, *_ = os.pread(self._statm, 128, 0).split()
        return (int(resident) - int(shared)) * PAGE_BYTES


class _MacCounter:
    """`ri_phys_footprint` of `proc_pid_rusage` (libproc.h). Not run: written from its header."""

    _FOOTPRINT_OFFSET = 16 + 7 * 8  # rusage_info_v0: a uuid, then seven 64-bit fields before it

    def __init__(self) -> None:
        self._libproc = ctypes.CDLL("/usr/lib/libproc.dylib", use_errno=True)

    def host_bytes(self) -> int:
        info = ctypes.create_string_buffer(256)
        if self._libproc.proc_pid_rusage(os.getpid(), 0, info) != 0:
            raise OSError(ctypes.get_errno(), "proc_pid_rusage failed")
        return int.from_bytes(info.raw[self._FOOTPRINT_OFFSET :][:8], sys.byteorder)


@dataclass(frozen=True, slots=True)
class Reading:
    """Footprint at one moment."""

    footprint: int  # phone bytes
    host_bytes: int
    available: int  # phone bytes under the limit, 0 where there is none or none left


class MemoryGauge:
    """Reads the app's footprint in phone bytes."""

    def __init__(self, scale: int, limit_bytes: int | None) -> None:
        """Open the counter.

        Args:
            scale: Phone bytes per host byte.
            limit_bytes: The per-process limit in phone bytes, None where there is none.
        """
        self._counter = _LinuxCounter() if sys.platform == "linux" else _MacCounter()
        self.scale, self.limit_bytes = scale, limit_bytes
        self.peak = 0  # phone bytes, the highest of all readings

    def read(self) -> Reading:
        """Return the footprint now."""
        host_bytes = self._counter.host_bytes()
        footprint = host_bytes * self.scale
        self.peak = max(self.peak, footprint)
        available = 0 if self.limit_bytes is None else max(0, self.limit_bytes - footprint)
        return Reading(footprint, host_bytes, available)
