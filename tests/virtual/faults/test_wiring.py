"""Services whose connections misbehave: what the real client sees."""

from __future__ import annotations

import asyncio
import plistlib
import time
from typing import TYPE_CHECKING

import pytest
from pymobiledevice3 import usbmux
from pymobiledevice3.exceptions import (
    ConnectionTerminatedError,
    InvalidServiceError,
    PyMobileDevice3Exception,
)
from pymobiledevice3.services.afc import AfcService
from pymobiledevice3.services.diagnostics import DiagnosticsService
from pymobiledevice3.services.installation_proxy import InstallationProxyService

from orchestrator.virtual.faults.base import FaultError
from orchestrator.virtual.faults.vocabulary import fault_of
from tests.virtual.apps import BUNDLE_ID, ECHO_SERVER, pack
from tests.virtual.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from pymobiledevice3.lockdown import UsbmuxLockdownClient

    from orchestrator.virtual.farm import Farm
    from orchestrator.virtual.phone import VirtualPhone
    from tests.virtual.faults.conftest import Begin

INSTALLER = "com.apple.mobile.installation_proxy"
DIAGNOSTICS = "com.apple.mobile.diagnostics_relay"
LIMIT_S = 5


async def test_a_mute_service_takes_the_connection_and_never_answers(
    farm: Farm, lockdown: UsbmuxLockdownClient, begin: Begin
) -> None:
    await begin("mute", service=INSTALLER)
    async with InstallationProxyService(lockdown) as proxy:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(proxy.get_apps(), 0.1)
    await farm.faults.mend("vp-01")
    async with InstallationProxyService(lockdown) as proxy:
        assert await proxy.get_apps()


@pytest.mark.parametrize("at_byte", [0, 1, 100])
async def test_a_service_that_is_slammed_shut_has_sent_so_many_bytes(
    lockdown: UsbmuxLockdownClient, begin: Begin, at_byte: int
) -> None:
    await begin("slam", service=INSTALLER, at_byte=at_byte)
    service = await lockdown.start_lockdown_service(INSTALLER)
    await service.send_plist({"Command": "Browse"})
    if at_byte:
        assert len(await service.recvall(at_byte)) == at_byte
    with pytest.raises(ConnectionTerminatedError):
        await service.recvall(1)
    await service.close()


async def test_a_client_of_a_slammed_service_gets_an_error_not_half_an_answer(
    lockdown: UsbmuxLockdownClient, begin: Begin
) -> None:
    await begin("slam", service=INSTALLER, at_byte=100)
    async with InstallationProxyService(lockdown) as proxy:
        with pytest.raises(ConnectionTerminatedError):
            await proxy.get_apps()


async def test_junk_is_an_error_of_the_client_and_the_same_under_one_seed(
    farm: Farm, phone: VirtualPhone, lockdown: UsbmuxLockdownClient, begin: Begin
) -> None:
    await begin("junk", service=DIAGNOSTICS, from_byte=4)
    first = phone.settings.tampering[DIAGNOSTICS].seed
    async with DiagnosticsService(lockdown) as diagnostics:
        with pytest.raises((PyMobileDevice3Exception, ValueError)):
            async with asyncio.timeout(LIMIT_S):
                await diagnostics.get_battery()
    await farm.faults.mend("vp-01")
    await begin("junk", service=DIAGNOSTICS)
    assert phone.settings.tampering[DIAGNOSTICS].seed != first  # the second of its kind


async def test_an_oversized_reply_is_announced_and_never_comes(
    lockdown: UsbmuxLockdownClient, begin: Begin
) -> None:
    await begin("oversized", service=DIAGNOSTICS)
    service = await lockdown.start_lockdown_service(DIAGNOSTICS)
    await service.send_plist({"Request": "All"})
    assert int.from_bytes(await service.recvall(4), "big") == 0x7FFFFFFF
    await service.close()


async def test_a_slow_afc_takes_as_long_as_its_bytes_need(
    lockdown: UsbmuxLockdownClient, begin: Begin
) -> None:
    await begin("slow", bytes_per_s=100_000)
    async with AfcService(lockdown) as afc:
        began_s = time.monotonic()
        await afc.set_file_contents("/slow.bin", b"x" * 20_000)
        assert await afc.get_file_contents("/slow.bin") == b"x" * 20_000
    assert 0.35 < time.monotonic() - began_s < LIMIT_S


async def test_a_stalling_afc_falls_silent_and_stays_connected(
    lockdown: UsbmuxLockdownClient, begin: Begin
) -> None:
    await begin("stall", at_byte=48)
    service = await lockdown.start_lockdown_service("com.apple.afc")
    request = b"CFA6LPAA" + b"".join(n.to_bytes(8, "little") for n in (40, 40, 1, 0x0B))
    await service.sendall(request)
    await service.recvall(48)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(service.recvall(1), 0.1)
    await service.close()


async def test_an_idle_afc_is_dropped_and_a_busy_one_is_not(
    lockdown: UsbmuxLockdownClient, begin: Begin
) -> None:
    await begin("idle_drop", idle_s=0.2)
    async with AfcService(lockdown) as afc:
        for _ in range(4):
            await afc.listdir("/")
            await asyncio.sleep(0.06)
        async with asyncio.timeout(LIMIT_S):
            await afc.wait_terminated()


async def test_the_port_of_an_app_is_refused_and_open_ones_break(
    farm: Farm, phone: VirtualPhone, lockdown: UsbmuxLockdownClient, begin: Begin, tmp_path: Path
) -> None:
    async with InstallationProxyService(lockdown) as proxy:
        await proxy.install_from_local(pack(tmp_path / "soak.ipa", ECHO_SERVER))
    await phone.machine.launch(BUNDLE_ID, {"FLEET_PORT": "9001"}, [], kill_existing=True)
    await until(lambda: phone.machine.kernel.app_socket(9001) is not None)
    device = await usbmux.select_device(phone.udid)
    assert device is not None
    reader, writer = await asyncio.open_connection(sock=await device.connect(9001))
    await begin("telemetry_refused")
    async with asyncio.timeout(LIMIT_S):
        assert await reader.read(1) == b""
    writer.close()
    with pytest.raises(PyMobileDevice3Exception):
        await device.connect(9001)
    await farm.faults.mend("vp-01")
    (await device.connect(9001)).close()


async def test_a_service_that_the_phone_does_not_have_is_refused_by_name(
    farm: Farm, lockdown: UsbmuxLockdownClient
) -> None:
    with pytest.raises(FaultError, match=r"com\.apple\.afc"):
        await farm.faults.begin("vp-01", fault_of("mute", {"service": "com.apple.nope"}))
    with pytest.raises(InvalidServiceError):
        await lockdown.start_lockdown_service("com.apple.nope")


async def test_a_fault_of_lockdownd_leaves_the_other_phone_alone(
    farm: Farm, phone: VirtualPhone, begin: Begin
) -> None:
    await begin("slam", service="lockdownd")
    devices = {device.serial: device for device in await usbmux.list_devices()}
    answers = {}
    for each in farm.phones:
        reader, writer = await asyncio.open_connection(sock=await devices[each.udid].connect(62078))
        body = plistlib.dumps({"Request": "QueryType"})
        writer.write(len(body).to_bytes(4, "big") + body)
        answers[each.identity.name] = len(await reader.read(4))
        writer.close()
    assert answers == {"vp-01": 0, "vp-02": 4}
