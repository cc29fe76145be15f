"""Locks, trust, Developer Mode and the developer image: what the real client sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pymobiledevice3.dtx import DTXNsError
from pymobiledevice3.exceptions import (
    InvalidServiceError,
    NotPairedError,
    PairingDialogResponsePendingError,
    PasswordRequiredError,
    UserDeniedPairingError,
)
from pymobiledevice3.lockdown import create_using_usbmux
from pymobiledevice3.remote.core_device.device_info import DeviceInfoService
from pymobiledevice3.services.dvt.instruments.dvt_provider import DvtProvider
from pymobiledevice3.services.dvt.instruments.process_control import ProcessControl
from pymobiledevice3.services.mobile_image_mounter import DeveloperDiskImageMounter
from pymobiledevice3.services.mobile_image_mounter import MobileImageMounterService as Mounter

from orchestrator.virtual.farm import ServeOptions, running_farm
from orchestrator.virtual.faults.vocabulary import fault_of
from tests.virtual.remote import connected
from tests.virtual.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from pymobiledevice3.lockdown import UsbmuxLockdownClient
    from pymobiledevice3.remote.remote_service_discovery import RemoteServiceDiscoveryService

    from orchestrator.virtual.farm import Farm
    from orchestrator.virtual.phone import VirtualPhone
    from tests.virtual.faults.conftest import Begin

SAFARI = "com.apple.mobilesafari"


async def test_a_locked_phone_launches_nothing_until_it_is_unlocked(
    farm: Farm, phone: VirtualPhone, begin: Begin
) -> None:
    await begin("lock")
    async with (
        connected(farm, phone) as remote,
        DvtProvider(remote) as dvt,
        ProcessControl(dvt) as control,
    ):
        with pytest.raises(DTXNsError, match="Locked"):
            await control.launch(SAFARI)
        await begin("unlock")
        assert await control.launch(SAFARI) > 0


async def test_core_device_says_whether_the_phone_is_locked(
    farm: Farm, phone: VirtualPhone, begin: Begin
) -> None:
    await begin("lock")
    async with connected(farm, phone) as remote, DeviceInfoService(remote) as info:
        assert (await info.get_lockstate())["passcodeRequired"] is True
        assert (await info.get_device_info())["udid"] == phone.udid


async def test_a_lost_pairing_leaves_a_pair_record_that_is_worth_nothing(
    farm: Farm, phone: VirtualPhone, begin: Begin
) -> None:
    await begin("pairing_lost")
    client = await create_using_usbmux(serial=phone.udid, autopair=False)
    assert not client.paired
    with pytest.raises(NotPairedError):
        await client.start_lockdown_service("com.apple.afc")
    await client.close()
    await farm.faults.mend("vp-01")
    async with await create_using_usbmux(serial=phone.udid, autopair=False) as again:
        assert again.paired


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("pending", PairingDialogResponsePendingError),
        ("denied", UserDeniedPairingError),
        ("locked", PasswordRequiredError),
    ],
)
async def test_a_phone_that_does_not_trust_says_so_when_it_is_asked(
    phone: VirtualPhone, begin: Begin, answer: str, error: type[Exception]
) -> None:
    await begin("trust", answer=answer)
    with pytest.raises(error):
        await create_using_usbmux(serial=phone.udid, autopair=True, pair_timeout=0)


@pytest.mark.parametrize("kind", ["developer_mode_off", "ddi_unmounted"])
async def test_without_developer_mode_or_image_there_are_no_developer_services(
    farm: Farm, phone: VirtualPhone, lockdown: UsbmuxLockdownClient, begin: Begin, kind: str
) -> None:
    await begin(kind)
    assert await lockdown.get_developer_mode_status() is (kind != "developer_mode_off")
    async with connected(farm, phone) as remote:
        with pytest.raises(InvalidServiceError):
            async with DvtProvider(remote):
                pass
    await farm.faults.mend("vp-01")
    async with connected(farm, phone) as remote, DvtProvider(remote):
        pass


async def test_an_image_can_be_mounted_again_by_the_client(
    state: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With iOS 16, whose image needs no signature of Apple's servers."""
    image, signature = tmp_path / "image.dmg", tmp_path / "image.signature"
    image.write_bytes(b"x" * 100_000)
    signature.write_bytes(b"signed")
    options = ServeOptions(phones=[("iPhone 14", "16.7.10")], folder=state)
    async with running_farm(options) as farm:
        monkeypatch.setenv("USBMUXD_SOCKET_ADDRESS", farm.describe().usbmux)
        await farm.faults.begin("all", fault_of("ddi_unmounted", {}))
        async with await create_using_usbmux(serial=farm.phones[0].udid) as lockdown:
            with pytest.raises(InvalidServiceError):
                async with DvtProvider(lockdown):
                    pass
            async with DeveloperDiskImageMounter(lockdown) as mounter:
                await mounter.mount(image, signature)
            async with Mounter(lockdown) as mounter:
                assert await mounter.is_image_mounted("Developer")
                assert not await mounter.is_image_mounted("Personalized")
            async with DvtProvider(lockdown):
                pass


async def test_rsd_lists_developer_services_only_where_they_are(
    farm: Farm, phone: VirtualPhone, begin: Begin
) -> None:
    async def offered() -> set[str]:
        async with connected(farm, phone) as remote:
            return set(services_of(remote))

    before = await offered()
    await begin("ddi_unmounted")
    assert before - await offered() == {
        "com.apple.coredevice.appservice",
        "com.apple.coredevice.deviceinfo",
        "com.apple.dt.testmanagerd.remote",
        "com.apple.instruments.dtservicehub",
    }


def services_of(remote: RemoteServiceDiscoveryService) -> list[str]:
    assert remote.peer_info is not None
    return list(remote.peer_info["Services"])


async def test_a_lock_suspends_apps_and_an_unlock_wakes_them(farm: Farm, begin: Begin) -> None:
    kinds: list[str] = []
    farm.events.listeners.add(lambda event: kinds.append(event.kind))
    async with (
        connected(farm, farm.phones[0]) as remote,
        DvtProvider(remote) as dvt,
        ProcessControl(dvt) as control,
    ):
        await control.launch("dev.fleet.virtual.notepad")
        await begin("lock", suspend_after_s=0.01)
        await until(lambda: "app_suspended" in kinds)
        await begin("unlock")
    apps = [kind for kind in kinds if kind.startswith("app_")]
    assert apps == ["app_launched", "app_background", "app_suspended", "app_foreground"]
