"""The environment of a launch, and the unix socket that stands for an app's TCP port.

Source: docs/protocol.md, section 1.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.kernel.errors import LaunchRefusedError
from orchestrator.virtual.kernel.image import lc_uuid

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from orchestrator.virtual.kernel.values import InstalledApp, KernelFacts

DEFAULT_PORT: Final = 28450

# `sun_path` with its closing zero: 108 bytes on Linux, 104 on macOS (unix(7), sys/un.h).
SOCKET_PATH_LIMIT_BYTES: Final = 103 if sys.platform == "darwin" else 107

# An executable with `#!/usr/bin/env` and one linked against a toolchain's libraries need these.
_INHERITED: Final = ("PATH", "LD_LIBRARY_PATH")


def port_of(app: InstalledApp, environment: Mapping[str, str]) -> int:
    """Return the port on the phone's loopback that the app is asked to listen on.

    Raises:
        LaunchRefusedError: If `FLEET_PORT` is not a port number.
    """
    text = environment.get("FLEET_PORT", str(DEFAULT_PORT))
    if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) < 1 << 16):
        raise LaunchRefusedError(app.bundle_id, f"FLEET_PORT is {text[:20]!r}, not a port")
    return int(text)


def socket_of(app: InstalledApp, port_folder: Path, port: int) -> Path:
    """Return the path of the app's socket.

    Raises:
        LaunchRefusedError: If a unix socket cannot have so long a path.
    """
    path = port_folder / f"{port}.sock"
    length_bytes = len(os.fsencode(path))
    if length_bytes > SOCKET_PATH_LIMIT_BYTES:
        facts = f"{path} has {length_bytes} bytes, a socket path holds {SOCKET_PATH_LIMIT_BYTES}"
        raise LaunchRefusedError(app.bundle_id, facts, remedy="Use a shorter folder")
    return path


def child_environment(
    facts: KernelFacts,
    app: InstalledApp,
    socket: Path,
    given: Mapping[str, str],
    host: Mapping[str, str],
) -> dict[str, str]:
    """Return the complete environment of a launch; what the phone sets wins over what is given.

    Args:
        facts: The phone.
        app: What is launched.
        socket: Where the app has to listen.
        given: What the launch request carries.
        host: Environment of this process; only the search paths are taken from it.
    """
    inherited = {name: host[name] for name in _INHERITED if name in host}
    phone = {
        "HOME": str(app.sandbox),
        "TMPDIR": str(app.sandbox / "tmp"),
        "FLEET_SOCKET": str(socket),
        "FLEET_MEMORY_SCALE": str(facts.memory_scale),
        "FLEET_MEMORY_LIMIT_BYTES": str(facts.limit_bytes),
        "FLEET_PHYSICAL_MEMORY_BYTES": str(facts.model.physical_memory_bytes),
        "FLEET_PRODUCT_TYPE": facts.model.product_type,
        "FLEET_OS": facts.os,
        "FLEET_BUILD": facts.build,
        "FLEET_BOOT_TIME_S": str(facts.boot_time_s),
        "FLEET_LC_UUID": _uuid_of(app),
        "FLEET_PARENT_PID": str(os.getpid()),
    }
    return inherited | dict(given) | phone


def _uuid_of(app: InstalledApp) -> str:
    """Return the UUID that reports name the app by, empty where its file cannot be read."""
    try:
        return lc_uuid(app.executable)
    except OSError:
        return ""
