"""Threads and images of a crash report.

The host's addresses mean nothing on a phone. The faulting thread stands at the start of the
executable, below it the frames that every app has; registers are empty. Offsets in Apple's images
are made up, the same for one build of iOS.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final
from uuid import NAMESPACE_DNS, uuid5

_IMAGE_BASE: Final = 4_294_967_296
_SYSTEM_BASE: Final = 6_442_450_944
_SYSTEM_IMAGE_BYTES: Final = 262_144
_IMAGE_BYTES: Final = 16_384
_POINTER_REGISTERS: Final = ("lr", "cpsr", "fp", "sp", "esr", "pc", "far")

_SYSTEM_IMAGES: Final = (
    "/usr/lib/dyld",
    "/usr/lib/system/libsystem_kernel.dylib",
    "/usr/lib/system/libsystem_pthread.dylib",
    "/usr/lib/system/libdispatch.dylib",
    "/System/Library/Frameworks/CoreFoundation.framework/CoreFoundation",
    "/System/Library/PrivateFrameworks/UIKitCore.framework/UIKitCore",
    "/System/Library/Frameworks/CoreML.framework/CoreML",
)

# name or queue of a thread, the images of its frames, innermost first; image 0 is the app's
_FAULTING: Final = ("com.apple.main-thread", (0, 0, 5, 6, 1))
_OTHERS: Final = (
    ("com.apple.uikit.eventfetch-thread", (2, 2, 5, 6, 3)),
    ("", (2, 3, 3)),
    ("com.apple.CoreMLBatchProcessingQueue", (2, 7, 4, 3)),
)


@dataclass(frozen=True, slots=True)
class MainImage:
    """The executable that crashed."""

    name: str
    bundle_id: str
    uuid: str
    path: str  # on the phone


def stacks(image: MainImage, thread_id: int, build: str) -> dict[str, object]:
    """Return the part of a report that tells where the process stood."""
    first = {
        "triggered": True,
        "id": thread_id,
        "queue": _FAULTING[0],
        "threadState": _empty_registers(),
        "frames": _frames(_FAULTING[1], build),
    }
    others = [
        {"id": thread_id + number, "name": name, "frames": _frames(images, build)}
        for number, (name, images) in enumerate(_OTHERS, start=1)
    ]
    return {
        "faultingThread": 0,
        "threads": [first, *others],
        "usedImages": [_main_entry(image), *_system_entries(build)],
        "sharedCache": {
            "base": _SYSTEM_BASE,
            "size": 4_294_967_296,
            "uuid": str(uuid5(NAMESPACE_DNS, f"dyld_shared_cache.{build}")),
        },
        "vmSummary": "",
        "legacyInfo": {"threadTriggered": {"queue": _FAULTING[0]}},
    }


def _frames(images: tuple[int, ...], build: str) -> list[dict[str, int]]:
    return [
        {"imageOffset": _offset(image, depth, build), "imageIndex": image}
        for depth, image in enumerate(images)
    ]


def _offset(image: int, depth: int, build: str) -> int:
    if image == 0 and depth == 0:
        return 0
    size = _IMAGE_BYTES if image == 0 else _SYSTEM_IMAGE_BYTES
    digest = hashlib.sha256(f"{build}/{image}/{depth}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % size & ~3


def _empty_registers() -> dict[str, object]:
    pointers: dict[str, object] = {name: {"value": 0} for name in _POINTER_REGISTERS}
    return {"flavor": "ARM_THREAD_STATE64", "x": [{"value": 0} for _ in range(29)]} | pointers


def _main_entry(image: MainImage) -> dict[str, object]:
    return {
        "source": "P",
        "arch": "arm64",
        "base": _IMAGE_BASE,
        "size": _IMAGE_BYTES,
        "uuid": image.uuid,
        "path": image.path,
        "name": image.name,
        "CFBundleIdentifier": image.bundle_id,
    }


def _system_entries(build: str) -> list[dict[str, object]]:
    return [
        {
            "source": "P",
            "arch": "arm64e",
            "base": _SYSTEM_BASE + place * _SYSTEM_IMAGE_BYTES,
            "size": _SYSTEM_IMAGE_BYTES,
            "uuid": str(uuid5(NAMESPACE_DNS, f"{path}.{build}")),
            "path": path,
            "name": path.rsplit("/", 1)[1],
        }
        for place, path in enumerate(_SYSTEM_IMAGES)
    ]
