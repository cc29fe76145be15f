"""Cables, hubs, power, usbmuxd, Wi-Fi and tunnels: what the real client sees."""

from __future__ import annotations

import asyncio
import json
import struct
from typing import TYPE_CHECKING

import pytest
from pymobiledevice3 import usbmux
from pymobiledevice3.exceptions import (
    ConnectionTerminatedError,
    DeviceNotFoundError,
    PasswordRequiredError,
)
from pymobiledevice3.lockdown import create_using_usbmux
from pymobiledevice3.services.afc import AfcService

from orchestrator.virtual.faults.vocabulary import fault_of
from orchestrator.virtual.phone import COREDEVICE_PROXY
from tests.virtual.waiting import until

if TYPE_CHECKING:
    from pymobiledevice3.lockdown import UsbmuxLockdownClient
    from pymobiledevice3.service_connection import ServiceConnection

    from orchestrator.virtual.farm import Farm
    from orchestrator.virtual.phone import VirtualPhone
    from tests.virtual.faults.conftest import Begin

# The client library leaves futures with unretrieved exceptions when a phone goes away. When the
# garbage collector meets them is chance, and says nothing about the phone.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


async def open_tunnel(lockdown: UsbmuxLockdownClient) -> tuple[ServiceConnection, str]:
    """Shake hands; return the open connection and the phone's address in the tunnel."""
    service = await lockdown.start_lockdown_service(COREDEVICE_PROXY)
    body = b'{"type": "clientHandshakeRequest", "mtu": 16000}'
    await service.sendall(b"CDTunnel" + struct.pack(">H", len(body)) + body)
    (length,) = struct.unpack(">H", (await service.recvall(10))[8:])
    return service, json.loads(await service.recvall(length))["serverAddress"]


async def listed() -> list[tuple[str, str]]:
    devices = await usbmux.list_devices()
    return sorted((device.serial, device.connection_type) for device in devices)


async def test_an_unplugged_phone_is_gone_and_its_connections_break(
    farm: Farm, phone: VirtualPhone, lockdown: UsbmuxLockdownClient, begin: Begin
) -> None:
    async with AfcService(lockdown) as afc:
        assert await afc.listdir("/")
        await begin("unplug")
        assert [serial for serial, _ in await listed()] == [farm.phones[1].udid]
        with pytest.raises(ConnectionTerminatedError):
            await afc.listdir("/")
    with pytest.raises(DeviceNotFoundError):
        await create_using_usbmux(serial=phone.udid, autopair=False)
    assert not phone.settings.battery.charging
    await begin("replug")
    assert await lockdown.get_value(key="DeviceName") == "vp-01"


async def test_a_hub_takes_several_phones_with_it(farm: Farm, begin: Begin) -> None:
    await begin("hub_loss", ports=2)
    assert await listed() == []
    assert await farm.faults.mend("all") == 1
    assert len(await listed()) == 2


async def test_a_reboot_takes_the_phone_away_and_nobody_unlocks_it_on_order(
    farm: Farm, phone: VirtualPhone, lockdown: UsbmuxLockdownClient, begin: Begin
) -> None:
    booted_s = phone.machine.boot_time_s
    await begin("reboot", stays_locked=True)
    assert phone.machine.boot_time_s > booted_s
    assert await lockdown.get_value(key="PasswordProtected") is True
    with pytest.raises(PasswordRequiredError):
        await lockdown.start_lockdown_service("com.apple.afc")
    await (await lockdown.start_lockdown_service("com.apple.mobile.diagnostics_relay")).close()
    await farm.faults.mend("vp-01")
    await (await lockdown.start_lockdown_service("com.apple.afc")).close()


async def test_a_usbmuxd_that_hangs_answers_when_it_has_recovered(farm: Farm, begin: Begin) -> None:
    await begin("usbmux_hang")
    asked = asyncio.ensure_future(usbmux.list_devices())
    done, _ = await asyncio.wait([asked], timeout=0.1)
    assert not done
    await farm.faults.mend("all")
    assert len(await asked) == 2


async def test_a_usbmuxd_that_restarts_refuses_meanwhile_and_has_new_device_ids(
    farm: Farm, lockdown: UsbmuxLockdownClient, begin: Begin
) -> None:
    before = {device.devid for device in await usbmux.list_devices()}
    await begin("usbmux_restart")
    with pytest.raises(Exception, match=r"usbmuxd|refused|Connect"):
        await usbmux.list_devices()
    await farm.faults.mend("all")
    after = {device.devid for device in await usbmux.list_devices()}
    assert len(after) == 2
    assert not before & after
    assert await lockdown.get_value(key="DeviceName") == "vp-01"


async def test_a_phone_on_wifi_is_listed_twice(
    farm: Farm, phone: VirtualPhone, begin: Begin
) -> None:
    await begin("wifi_duplicate")
    mine = [kind for serial, kind in await listed() if serial == phone.udid]
    assert sorted(mine) == ["Network", "USB"]
    await farm.faults.mend("all")
    assert [kind for serial, kind in await listed() if serial == phone.udid] == ["USB"]


async def test_a_tunnel_that_moves_breaks_and_the_next_has_another_address(
    farm: Farm, phone: VirtualPhone, lockdown: UsbmuxLockdownClient, begin: Begin
) -> None:
    service, first = await open_tunnel(lockdown)
    await begin("tunnel_moved")
    with pytest.raises(ConnectionTerminatedError):
        await service.recvall(1)
    other, second = await open_tunnel(lockdown)
    assert first != second
    await other.close()
    await service.close()


async def test_an_unplugged_battery_drains_and_a_plugged_one_charges(
    farm: Farm, phone: VirtualPhone, lockdown: UsbmuxLockdownClient, begin: Begin
) -> None:
    await farm.faults.begin("vp-01", fault_of("unplug", {}), for_s=0.01)
    await until(lambda: phone.settings.battery.charging)
    battery = await lockdown.get_value("com.apple.mobile.battery")
    assert battery["ExternalConnected"] is True
