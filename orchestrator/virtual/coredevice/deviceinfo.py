"""com.apple.coredevice.deviceinfo: who the phone is, and whether it is locked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from orchestrator.virtual.coredevice.service import FeatureService

if TYPE_CHECKING:
    from orchestrator.virtual.machine import Machine

_SCREEN: Final = {"width": 1179, "height": 2556, "scale": 3.0, "isMain": True}


def device_info(machine: Machine) -> FeatureService:
    """Return the service of one phone."""

    async def device(_request: dict[str, Any]) -> dict[str, Any]:
        identity = machine.identity
        return {
            "name": machine.settings.name,
            "deviceClass": "iPhone",
            "hardwareModel": identity.model.hardware_model,
            "marketingName": identity.model.model,
            "productType": identity.model.product_type,
            "osVersion": identity.os,
            "osBuildVersion": identity.build,
            "serialNumber": identity.serial_number,
            "udid": identity.udid,
            "ecid": identity.ecid,
        }

    async def display(_request: dict[str, Any]) -> dict[str, Any]:
        return {"displays": [dict(_SCREEN)]}

    async def lock_state(_request: dict[str, Any]) -> dict[str, Any]:
        settings = machine.settings
        return {
            "passcodeRequired": settings.locked,
            "unlockedSinceBoot": not settings.before_first_unlock,
        }

    return FeatureService(
        {"getdeviceinfo": device, "getdisplayinfo": display, "getlockstate": lock_state}, {}
    )
