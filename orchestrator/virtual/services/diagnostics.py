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
        return {"IORegistry": self._battery()} if wanted & _BATTERY_CLASSES else {}

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
        return {
            "AppleRawMaxCapacity": battery.full_capacity_mah,
            "BatteryInstalled": True,
            "CurrentCapacity": battery.level_percent,
            "CycleCount": battery.cycle_count,
            "DesignCapacity": battery.design_capacity_mah,
            "ExternalConnected": battery.charging,
            "FullyCharged": battery.level_percent >= 100,
            "InstantAmperage": battery.current_ma,
            "IsCharging": battery.charging,
            "MaxCapacity": 100,
            "NominalChargeCapacity": battery.full_capacity_mah,
            "Serial": self._identity.serial_number,
            "Temperature": battery.temperature_centi_c,
            "Voltage": battery.voltage_mv,
        }
