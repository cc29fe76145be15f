"""All kinds of faults, and how their names and settings are read."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args

import msgspec

from orchestrator.virtual.faults import access, cable, malice, pressure, state, wiring
from orchestrator.virtual.faults.base import Fault, FaultError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

AnyFault: TypeAlias = (
    cable.Unplug
    | cable.UnplugAtWrite
    | cable.Replug
    | cable.HubLoss
    | cable.Reboot
    | cable.UsbmuxHang
    | cable.UsbmuxRestart
    | cable.WifiDuplicate
    | cable.TunnelMoved
    | access.Lock
    | access.Unlock
    | access.PairingLost
    | access.Trust
    | access.DeveloperModeOff
    | access.DdiUnmounted
    | wiring.Mute
    | wiring.Slam
    | wiring.Stall
    | wiring.Slow
    | wiring.IdleDrop
    | wiring.Junk
    | wiring.Oversized
    | wiring.TelemetryRefused
    | state.DiskFull
    | state.InstallError
    | state.ClockSkew
    | state.BatteryDrain
    | state.LowPower
    | state.Reports
    | malice.HostileName
    | malice.HostileFiles
    | malice.HostileApp
    | pressure.Heat
    | pressure.MemoryWarning
    | pressure.MemoryPressure
    | pressure.Watchdog
    | pressure.ThermalKill
    | pressure.Background
)

KINDS: Final[Mapping[str, type[Fault]]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(AnyFault)
}


def fault_of(kind: str, settings: Mapping[str, Any]) -> Fault:
    """Return the fault of a kind.

    Args:
        kind: Its name, like `slam`.
        settings: Its settings by name; numbers may be text.

    Raises:
        FaultError: If the kind is unknown, or a setting is unknown, missing or wrong.
    """
    if kind not in KINDS:
        raise FaultError(f"{kind!r} is no kind of fault; known: {', '.join(sorted(KINDS))}")
    try:
        fault: Fault = msgspec.convert({**settings, "kind": kind}, type=KINDS[kind], strict=False)
    except msgspec.ValidationError as error:
        raise FaultError(f"fault {kind}: {error}") from error
    return fault


def settings_of(fault: Fault) -> dict[str, Any]:
    """Return the settings of a fault by name, as `fault_of` takes them."""
    document: dict[str, Any] = msgspec.to_builtins(fault)
    return {name: value for name, value in document.items() if name != "kind"}


def kind_of(fault: Fault) -> str:
    """Return the name of a fault's kind."""
    return str(type(fault).__struct_config__.tag)


def describe_kinds() -> Sequence[tuple[str, str]]:
    """Return each kind with its settings, and the first line of its help."""
    return [
        (_signature(kind), (inspect.getdoc(fault) or "").split("\n")[0])
        for kind, fault in KINDS.items()
    ]


def _signature(kind: str) -> str:
    fields = msgspec.structs.fields(KINDS[kind])
    return " ".join([kind, *(f"{each.name}=" for each in fields)])
