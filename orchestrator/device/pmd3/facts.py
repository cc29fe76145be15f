"""Reads `PhoneFacts` over one lockdown session."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import anyio
from pymobiledevice3.exceptions import PyMobileDevice3Exception
from pymobiledevice3.services.diagnostics import DiagnosticsService
from pymobiledevice3.services.mobile_image_mounter import MobileImageMounterService

from orchestrator.device.facts import ClockReading, PhoneFacts, VirtualFacts
from orchestrator.device.pmd3.browser import VIRTUAL_DOMAIN, text_of
from orchestrator.device.pmd3.usbmux import value_or_none

if TYPE_CHECKING:
    from collections.abc import Callable

    from pymobiledevice3.lockdown import UsbmuxLockdownClient

BATTERY: Final = "com.apple.mobile.battery"
DISK: Final = "com.apple.disk_usage"
POWER_LIMIT_S: Final = 3.0
LONGEST_REPORT_DELAY_S: Final = 600.0  # what states more is no virtual phone of ours
CLOCK_QUESTIONS: Final = 3  # the quickest answer says most about the clock


async def read_facts(
    client: UsbmuxLockdownClient, wall_clock: Callable[[], float] = time.time
) -> PhoneFacts:
    """Return what the phone says; what this iOS does not say is None."""
    values: dict[str, Any] = client.all_values
    power = await _power_source(client)
    centi_c, current_ma = _int(power.get("Temperature")), _int(power.get("InstantAmperage"))
    return PhoneFacts(
        name=text_of(values, "DeviceName"),
        product_type=text_of(values, "ProductType"),
        os=text_of(values, "ProductVersion"),
        build=text_of(values, "BuildVersion"),
        serial=text_of(values, "SerialNumber") or None,
        wifi=text_of(values, "WiFiAddress") or None,
        battery_percent=_int(await value_or_none(client, BATTERY, "BatteryCurrentCapacity")),
        charging=_bool(await value_or_none(client, BATTERY, "BatteryIsCharging")),
        free_disk_bytes=await _free_disk_bytes(client),
        developer_mode=_bool(
            await value_or_none(client, "com.apple.security.mac.amfi", "DeveloperModeStatus")
        ),
        ddi_mounted=await _ddi_mounted(client),
        locked=_bool(await value_or_none(client, None, "PasswordProtected")),
        clock=await _clock(client, wall_clock),
        virtual=await _virtual(client),
        temperature_c=None if centi_c is None else centi_c / 100,
        battery_current_ma=None if current_ma is None else _signed(current_ma),
    )


async def _power_source(client: UsbmuxLockdownClient) -> dict[str, Any]:
    """Return IORegistry's `IOPMPowerSource`; a phone that does not tell is no failure."""
    with anyio.move_on_after(POWER_LIMIT_S), suppress(PyMobileDevice3Exception):
        async with DiagnosticsService(client) as diagnostics:
            values = await diagnostics.ioregistry(ioclass="IOPMPowerSource")
            return values if isinstance(values, dict) else {}
    return {}


def _signed(value: int) -> int:
    """Return a current as it is meant: IORegistry prints a negative one as unsigned 64 bit."""
    return value - 2**64 if value >= 2**63 else value


async def _free_disk_bytes(client: UsbmuxLockdownClient) -> int | None:
    for key in ("AmountDataAvailable", "TotalDataAvailable"):
        value = _int(await value_or_none(client, DISK, key))
        if value is not None:
            return value
    return None


async def _ddi_mounted(client: UsbmuxLockdownClient) -> bool:
    async with MobileImageMounterService(client) as mounter:
        return await mounter.is_image_mounted("Personalized")


async def _clock(
    client: UsbmuxLockdownClient, wall_clock: Callable[[], float]
) -> ClockReading | None:
    readings: list[ClockReading] = []
    for _ in range(CLOCK_QUESTIONS):
        asked_s = wall_clock()
        phone_s = await value_or_none(client, None, "TimeIntervalSince1970")
        answered_s = wall_clock()
        if not isinstance(phone_s, int | float):
            return None
        middle_s, half_s = (asked_s + answered_s) / 2, (answered_s - asked_s) / 2
        readings.append(ClockReading(float(phone_s) - middle_s, half_s))
    return min(readings, key=lambda reading: reading.uncertainty_s)


async def _virtual(client: UsbmuxLockdownClient) -> VirtualFacts | None:
    if await value_or_none(client, VIRTUAL_DOMAIN, "Virtual") is not True:
        return None
    scale = _int(await value_or_none(client, VIRTUAL_DOMAIN, "MemoryScale")) or 1
    delay_s = await value_or_none(client, VIRTUAL_DOMAIN, "ReportDelaySeconds")
    if isinstance(delay_s, int | float) and 0 <= delay_s <= LONGEST_REPORT_DELAY_S:
        return VirtualFacts(scale, float(delay_s))
    return VirtualFacts(scale)


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _bool(value: object) -> bool | None:
    return value if isinstance(value, bool) else None
