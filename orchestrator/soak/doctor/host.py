"""Checks of this computer: versions, disk, toolchain."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import sys
from typing import TYPE_CHECKING, Final

from orchestrator.domain.toolchain import how_to_get_swift
from orchestrator.soak.doctor.check import HOST, failed, ok, warning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from orchestrator.soak.doctor.check import DoctorCheck

OLDEST_PYTHON: Final = (3, 11)
LIBRARIES: Final = ("pymobiledevice3", "anyio", "msgspec")
PHONE_LIBRARY_MINOR: Final = "11.45."  # as pyproject.toml pins it
GIB: Final = 1024**3
NEEDED_BYTES: Final = GIB
ADVISED_BYTES: Final = 10 * GIB


def host_checks(runs: Path) -> Iterator[DoctorCheck]:
    """Yield what concerns every run, whatever its phones are.

    Args:
        runs: Where run directories go; need not be there.
    """
    yield python_check(sys.version_info[:3])
    yield library_check(importlib.metadata.version)
    yield disk_check(shutil.disk_usage(_existing(runs)).free)


def python_check(version: tuple[int, int, int]) -> DoctorCheck:
    """Check the interpreter."""
    text = ".".join(map(str, version))
    if version[:2] < OLDEST_PYTHON:
        return failed(HOST, "python", text, "python_too_old", "Install Python 3.11 or later")
    return ok(HOST, "python", f"{text} on {platform.system()} {platform.machine()}")


def library_check(version_of: Callable[[str], str]) -> DoctorCheck:
    """Check the library that talks to phones, whose minor version is pinned."""
    versions = {name: version_of(name) for name in LIBRARIES}
    text = ", ".join(f"{name} {version}" for name, version in versions.items())
    if not versions["pymobiledevice3"].startswith(PHONE_LIBRARY_MINOR):
        return failed(
            HOST,
            "libraries",
            text,
            "library_version",
            f"Install pymobiledevice3 {PHONE_LIBRARY_MINOR}*: `make` does",
        )
    return ok(HOST, "libraries", text)


def disk_check(free_bytes: int) -> DoctorCheck:
    """Check the room for run directories; a night of ten phones takes a few GiB."""
    text = f"{free_bytes / GIB:.1f} GiB free for runs"
    remedy = "Run `fleet prune`, or give --output another disk"
    if free_bytes < NEEDED_BYTES:
        return failed(HOST, "disk", text, "disk_full", remedy)
    if free_bytes < ADVISED_BYTES:
        return warning(HOST, "disk", text, "disk_low", remedy)
    return ok(HOST, "disk", text)


def swift_check() -> DoctorCheck:
    """Check the toolchain for virtual phones."""
    swift = shutil.which("swift")
    if swift is None:
        return warning(
            HOST,
            "swift",
            "no swift on PATH: virtual phones run the stand-in app",
            "no_swift",
            f"To test the Swift pipeline get Swift: {how_to_get_swift(sys.platform)}",
        )
    return ok(HOST, "swift", swift)


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.absolute().parent
    return path
