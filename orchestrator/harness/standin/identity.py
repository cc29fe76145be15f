"""Who the app is and where it runs: the environment of a launch (docs/protocol.md, 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.harness.standin.defects import Defect, parse_defect

if TYPE_CHECKING:
    from collections.abc import Mapping

APP: Final = "fleet-harness"
APP_VERSION: Final = "0.1.0"
DEFAULT_PORT: Final = 28450


class LaunchError(ValueError):
    """The environment of the launch is not usable."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Environment of one launch. Memory in phone bytes."""

    token: str
    port: int
    socket_path: Path | None  # None: TCP, and stdin is not the conditions channel
    defect: Defect
    memory_scale: int  # phone bytes per host byte
    limit_bytes: int | None
    physical_memory_bytes: int
    product_type: str
    os: str
    os_build: str
    parent_pid: int | None
    container: Path
    executable_uuid: str | None = None  # how crash reports name the app
    boot_time_s: float | None = None  # Unix time


def read_launch(env: Mapping[str, str]) -> Launch:
    """Return the launch that the environment describes.

    Raises:
        LaunchError: If the token is missing or a number is none.
        UnknownDefectError: If `FLEET_DEFECT` names no defect.
    """
    if not env.get("FLEET_TOKEN"):
        raise LaunchError("FLEET_TOKEN is missing")
    socket_path = env.get("FLEET_SOCKET")
    return Launch(
        token=env["FLEET_TOKEN"],
        port=_count(env, "FLEET_PORT") or DEFAULT_PORT,
        socket_path=Path(socket_path) if socket_path else None,
        defect=parse_defect(env.get("FLEET_DEFECT", "")),
        memory_scale=_count(env, "FLEET_MEMORY_SCALE") or 1,
        limit_bytes=_count(env, "FLEET_MEMORY_LIMIT_BYTES"),
        physical_memory_bytes=_count(env, "FLEET_PHYSICAL_MEMORY_BYTES") or 0,
        product_type=env.get("FLEET_PRODUCT_TYPE", "unknown"),
        os=env.get("FLEET_OS", "unknown"),
        os_build=env.get("FLEET_BUILD", "unknown"),
        parent_pid=_count(env, "FLEET_PARENT_PID"),
        container=Path(env.get("HOME", ".")),
        executable_uuid=env.get("FLEET_LC_UUID") or None,
        boot_time_s=_time_s(env, "FLEET_BOOT_TIME_S"),
    )


def _time_s(env: Mapping[str, str], name: str) -> float | None:
    text = env.get(name, "")
    if not text:
        return None
    try:
        time_s = float(text)
    except ValueError:
        time_s = math.nan
    if not 0 <= time_s < math.inf:
        raise LaunchError(f"{name} must be a time in seconds, not {text!r}")
    return time_s


def _count(env: Mapping[str, str], name: str) -> int | None:
    text = env.get(name, "")
    if not text:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise LaunchError(f"{name} must be a positive integer, not {text!r}")
    return int(text)
