"""What `devicectl` answers: the JSON of a file, never its text, which is no interface (H)."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestrator.domain.deadline import Deadline
from orchestrator.harness.tool import ToolRun, run_tool
from orchestrator.harness.xcode import commands

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT_S: Final = 20.0


class CoreDeviceError(Exception):
    """devicectl failed, or answered in a shape that is not known."""


@dataclass(frozen=True, slots=True)
class CoreDevice:
    """One phone as CoreDevice sees it; None where the answer does not say."""

    udid: str
    developer_mode: str | None  # "enabled"
    tunnel_state: str | None  # "connected", "disconnected", "unavailable"
    services_available: bool | None  # of the developer disk image


def list_core_devices(run: Callable[[list[str]], ToolRun] | None = None) -> list[CoreDevice]:
    """Ask devicectl for its phones.

    Args:
        run: Runs a command line; `run_tool` with a limit where it is None.

    Raises:
        CoreDeviceError: If it fails, or its answer cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="fleet-devicectl-") as folder:
        answer = Path(folder) / "devices.json"
        words = commands.core_device_list(answer, LIMIT_S)
        done = run(words) if run else run_tool(words, deadline=Deadline.after(2 * LIMIT_S))
        text = answer.read_text(errors="replace") if answer.is_file() else ""
    if done.exit_code != 0:
        raise CoreDeviceError(_said(text) or done.first_line)
    return core_devices(text)


def core_devices(text: str) -> list[CoreDevice]:
    """Return the phones of an answer: pure.

    `info.outcome`, `error` and `tunnelState` are H (tests of flutter_tools); the other names are L.

    Raises:
        CoreDeviceError: If it tells of a failure, or is no such answer.
    """
    try:
        values = json.loads(text)
        outcome, result = values["info"]["outcome"], values.get("result")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CoreDeviceError("its answer cannot be read") from error
    if outcome != "success":
        raise CoreDeviceError(_said(text) or f"outcome {outcome}")
    devices = result.get("devices") if isinstance(result, dict) else None
    return [_device(entry) for entry in devices or () if isinstance(entry, dict)]


def _device(entry: dict[str, Any]) -> CoreDevice:
    hardware, device, connection = (
        value if isinstance(value := entry.get(name), dict) else {}
        for name in ("hardwareProperties", "deviceProperties", "connectionProperties")
    )
    available = device.get("ddiServicesAvailable")
    return CoreDevice(
        udid=str(hardware.get("udid", "")),
        developer_mode=_text(device.get("developerModeStatus")),
        tunnel_state=_text(connection.get("tunnelState")),
        services_available=available if isinstance(available, bool) else None,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _said(text: str) -> str | None:
    """Return the sentence of a failed answer, with its number."""
    try:
        error = json.loads(text)["error"]
        described = error.get("userInfo", {}).get("NSLocalizedDescription", {})
        sentence = described.get("string") if isinstance(described, dict) else described
        return f"{error['domain']} {error['code']}: {sentence}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
