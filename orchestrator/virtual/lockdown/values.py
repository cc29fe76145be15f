"""Values that lockdown gives, by domain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.virtual.lockdown.domains import constant_domain

if TYPE_CHECKING:
    from orchestrator.virtual.identity import Identity
    from orchestrator.virtual.pki import KeySet
    from orchestrator.virtual.settings import Settings
    from orchestrator.virtual.wire import Plist

# Ours: lets a host mark the phone as virtual however it was reached.
VIRTUAL_DOMAIN: Final = "dev.fleet.virtual"

# What a phone tells a host that it does not trust.
_PUBLIC: Final = frozenset(
    {
        "BuildVersion",
        "CPUArchitecture",
        "DeviceClass",
        "DeviceName",
        "DevicePublicKey",
        "HardwareModel",
        "HumanReadableProductVersionString",
        "ProductName",
        "ProductType",
        "ProductVersion",
        "ProtocolVersion",
        "UniqueChipID",
        "UniqueDeviceID",
        "WiFiAddress",
    }
)


class DeviceValues:
    """The phone's values, with what hosts have set laid over them."""

    def __init__(
        self, identity: Identity, settings: Settings, keys: KeySet, memory_scale: int
    ) -> None:
        self._identity, self._settings, self._keys = identity, settings, keys
        self._memory_scale = memory_scale
        self._overlay: dict[str, Plist] = {}

    def get(self, domain: str, key: str | None, *, trusted: bool) -> object:
        """Return one value, or a domain's dictionary without a key; None if there is none.

        Args:
            domain: Empty for the device's own values.
            key: Name in the domain, or None for all of it.
            trusted: Whether the host has a session; without one it sees little.
        """
        values = self.domain(domain)
        if not trusted and domain != VIRTUAL_DOMAIN:
            values = {name: values[name] for name in _PUBLIC & values.keys()}
        return values if key is None else values.get(key)

    def set(self, domain: str, key: str, value: object) -> None:
        """Set one value; None removes what was set."""
        overlay = self._overlay.setdefault(domain, {})
        overlay.pop(key, None)
        if value is not None:
            overlay[key] = value
        if not domain and key == "DeviceName" and isinstance(value, str):
            self._settings.name = value

    def domain(self, name: str) -> Plist:
        """Return all values of a domain; empty if this phone has no such domain."""
        makers = {
            "": self._device,
            "com.apple.mobile.battery": self._battery,
            "com.apple.disk_usage": self._disk_usage,
            "com.apple.disk_usage.factory": self._disk_usage,
            "com.apple.security.mac.amfi": self._amfi,
            "com.apple.xcode.developerdomain": self._developer,
            VIRTUAL_DOMAIN: self._virtual,
        }
        values = makers[name]() if name in makers else constant_domain(name)
        return {**values, **self._overlay.get(name, {})}

    def _device(self) -> Plist:
        return {**self._hardware(), **self._software(), **self._state()}

    def _hardware(self) -> Plist:
        identity = self._identity
        return {
            "BluetoothAddress": identity.wifi_address,
            "BoardId": 12,
            "CPUArchitecture": "arm64e",
            "ChipID": identity.chip_id,
            "DeviceClass": "iPhone",
            "DieID": identity.ecid,
            "HardwareModel": identity.model.hardware_model,
            "HardwarePlatform": identity.model.chip,
            "ModelNumber": "V0001",
            "ProductType": identity.model.product_type,
            "RegionInfo": "LL/A",
            "SerialNumber": identity.serial_number,
            "UniqueChipID": identity.ecid,
            "UniqueDeviceID": identity.udid,
            "WiFiAddress": identity.wifi_address,
        }

    def _software(self) -> Plist:
        return {
            "BuildVersion": self._identity.build,
            "DevicePublicKey": self._keys.device_public_key.encode(),
            "HumanReadableProductVersionString": self._identity.os,
            "ProductName": "iPhone OS",
            "ProductVersion": self._identity.os,
            "ProtocolVersion": "2",
            "SoftwareBehavior": bytes(16),
        }

    def _state(self) -> Plist:
        return {
            "ActivationState": "Activated",
            "BrickState": False,
            "DeviceName": self._settings.name,
            "HostAttached": True,
            "PasswordProtected": self._settings.locked,
            "SBLockdownEverRegisteredKey": False,
            "TimeIntervalSince1970": self._settings.clock.time_s(),
            "TimeZone": "UTC",
            "TimeZoneOffsetFromUTC": 0.0,
            "TrustedHostAttached": True,
            "Uses24HourClock": True,
        }

    def _battery(self) -> Plist:
        battery = self._settings.battery
        return {
            "BatteryCurrentCapacity": battery.level_percent,
            "BatteryIsCharging": battery.charging,
            "ExternalChargeCapable": True,
            "ExternalConnected": battery.charging,
            "FullyCharged": battery.level_percent >= 100,
            "GasGaugeCapability": True,
            "HasBattery": True,
        }

    def _disk_usage(self) -> Plist:
        storage = self._settings.storage
        capacity, free = storage.capacity_bytes, storage.free_bytes
        system = capacity // 8
        return {
            "AmountDataAvailable": free,
            "AmountDataReserved": 0,
            "TotalDataAvailable": free,
            "TotalDataCapacity": capacity - system,
            "TotalDiskCapacity": capacity,
            "TotalSystemAvailable": 0,
            "TotalSystemCapacity": system,
        }

    def _developer(self) -> Plist:
        return {"DeveloperStatus": "Development"} if self._settings.offers_development else {}

    def _amfi(self) -> Plist:
        return {"DeveloperModeStatus": self._settings.developer_mode}

    def _virtual(self) -> Plist:
        return {
            "Virtual": True,
            "MemoryScale": self._memory_scale,
            "Model": self._identity.model.model,
            "ReportDelaySeconds": self._settings.reports.delay_s,
        }
