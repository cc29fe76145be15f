"""com.apple.mobile.diagnostics_relay: IORegistry, restart, shutdown."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.virtual.identity import Identity
    from orchestrator.virtual.settings import Settings
    from orchestrator.virtual.wire import Plist, Stream

_SUCCESS: Final = {"Status": "Success"}
_BATTERY_CLASSES: Final = frozenset({"IOPMPowerSource", "AppleSmartBattery"})
_PLATFORM_CLASSES: Final = frozenset({"IOPlatformExpertDevice", "device-tree"})
_ADAPTER: Final = {
    "AdapterVoltage": 5000,
    "Current": 2400,
    "Description": "usb host",
    "FamilyCode": -536_854_528,
    "PMUConfiguration": 2400,
    "Watts": 12,
}


class PowerRequest(StrEnum):
    """What a host can ask of the phone's power."""

    RESTART = "Restart"
    SHUTDOWN = "Shutdown"


class DiagnosticsRelay:
    """The service. `on_power` is called after a power request was answered."""

    def __init__(
        self,
        identity: Identity,
        settings: Settings,
        on_power: Callable[[PowerRequest], None],
    ) -> None:
        self._identity, self._settings, self._on_power = identity, settings, on_power

    async def serve(self, stream: Stream) -> None:
        """Answer requests until the client leaves."""
        while True:
            request = await stream.read_plist()
            kind = str(request.get("Request"))
            await stream.send_plist(self._answer(kind, request))
            if kind in set(PowerRequest):
                self._on_power(PowerRequest(kind))

    def _answer(self, kind: str, request: Plist) -> Plist:
        if kind == "IORegistry":
            return {**_SUCCESS, "Diagnostics": self._registry(request)}
        if kind == "MobileGestalt":
            # What iOS answers since 17.4.
            gestalt = {"MobileGestalt": {"Status": "MobileGestaltDeprecated"}}
            return {**_SUCCESS, "Diagnostics": gestalt}
        if kind in {"All", "GasGauge"}:
            return {**_SUCCESS, "Diagnostics": {"GasGauge": self._gas_gauge()}}
        known = {*PowerRequest, "Sleep", "Goodbye"}
        return dict(_SUCCESS) if kind in known else {"Status": "UnknownRequest"}

    def _registry(self, request: Plist) -> Plist:
        wanted = {request.get("EntryClass"), request.get("EntryName")}
        if wanted & _BATTERY_CLASSES:
            return {"IORegistry": self._battery()}
        if wanted & _PLATFORM_CLASSES:
            return {"IORegistry": self._expert()}
        return {} if wanted != {None} else {"IORegistry": self._root(request.get("CurrentPlane"))}

    def _root(self, plane: object) -> dict[str, Any]:
        """Return the top of a plane, for tools that walk the registry."""
        children = [
            {"name": "IOPlatformExpertDevice", "properties": self._expert(), "children": []},
            {"name": "AppleSmartBattery", "properties": self._battery(), "children": []},
        ]
        name = plane if isinstance(plane, str) else "IOService"
        return {"name": "Root", "properties": {"CurrentPlane": name}, "children": children}

    def _expert(self) -> dict[str, Any]:
        """Return the root of the device tree, as `ioregentry` tools ask for it."""
        model = self._identity.model
        return {
            "IOClass": "IOPlatformExpertDevice",
            "IOPlatformSerialNumber": self._identity.serial_number,
            "compatible": f"{model.hardware_model}\0{model.product_type}\0AppleARM\0".encode(),
            "model": f"{model.product_type}\0".encode(),
        }

    def _gas_gauge(self) -> Plist:
        battery = self._settings.battery
        return {
            "CycleCount": battery.cycle_count,
            "DesignCapacity": battery.design_capacity_mah,
            "FullChargeCapacity": battery.full_capacity_mah,
            "Status": "Success",
        }

    def _battery(self) -> dict[str, Any]:
        battery = self._settings.battery
        level = battery.level_percent
        return {
            "AbsoluteCapacity": battery.full_capacity_mah * level // 100,
            "AdapterDetails": _ADAPTER if battery.charging else {"FamilyCode": 0},
            "AppleRawCurrentCapacity": battery.full_capacity_mah * level // 100,
            "AppleRawMaxCapacity": battery.full_capacity_mah,
            "AtCriticalLevel": level <= 3,
            "BatteryInstalled": True,
            "BootVoltage": battery.voltage_mv - 12,
            "CurrentCapacity": level,
            "CycleCount": battery.cycle_count,
            "DesignCapacity": battery.design_capacity_mah,
            "ExternalConnected": battery.charging,
            "FullyCharged": level >= 100,
            "InstantAmperage": battery.current_ma,
            "IsCharging": battery.charging and level < 100,
            "MaxCapacity": 100,
            "NominalChargeCapacity": battery.full_capacity_mah,
            "Serial": self._identity.serial_number,
            "Temperature": battery.temperature_centi_c,
            "UpdateTime": int(self._settings.clock.time_s()),
            "Voltage": battery.voltage_mv,
        }
