"""Memory classes of iPhones.

Every 8 GB iPhone reports less than 8 GiB of `physicalMemory` (8,021,032,960 bytes on iPhone16,2),
so a comparison with `8 * 1024**3` is false on all of them. Classes are bands that round up.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

GIB: Final = 1024**3

_BANDS_BYTES: Final = ((10.0 * GIB, "12gb"), (7.0 * GIB, "8gb"), (5.0 * GIB, "6gb"))


class MemoryClass(StrEnum):
    """RAM class as the model policy uses it."""

    GB6 = "6gb"
    GB8 = "8gb"
    GB12 = "12gb"


def memory_class_of(physical_memory_bytes: int) -> MemoryClass | None:
    """Return the class of a phone by its reported memory, or None below 5.0 GiB.

    Args:
        physical_memory_bytes: `ProcessInfo.physicalMemory`, or sysmontap's `physMemSize`, in bytes.
    """
    for floor_bytes, name in _BANDS_BYTES:
        if physical_memory_bytes >= floor_bytes:
            return MemoryClass(name)
    return None
