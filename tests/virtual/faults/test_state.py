"""Disk, installer, clock, battery and reports: what the real client sees."""

from __future__ import annotations

import json
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest
from pymobiledevice3.exceptions import AfcException, AppInstallError
from pymobiledevice3.services.afc import AfcError, AfcService
from pymobiledevice3.services.crash_reports import CrashReportsManager
from pymobiledevice3.services.diagnostics import DiagnosticsService
from pymobiledevice3.services.installation_proxy import InstallationProxyService

from tests.virtual.apps import BUNDLE_ID, pack
from tests.virtual.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from pymobiledevice3.lockdown import UsbmuxLockdownClient

    from orchestrator.virtual.farm import Farm
    from orchestrator.virtual.phone import VirtualPhone
    from tests.virtual.faults.conftest import Begin


async def test_a_disk_is_full_at_its_byte(
    farm: Farm, lockdown: UsbmuxLockdownClient, begin: Begin
) -> None:
    await begin("disk_full", at_byte=1000)
    async with AfcService(lockdown) as afc:
        await afc.set_file_contents("/fits", b"x" * 600)
        with pytest.raises(AfcException) as full:
            await afc.set_file_contents("/bursts", b"x" * 600)
        assert full.value.status == AfcError.NO_SPACE_LEFT
        assert (await afc.stat("/bursts"))["st_size"] == 400
        info: dict[str, str] = await afc.get_device_info()
        assert info["FSFreeBytes"] == "0"
        await farm.faults.mend("vp-01")
        await afc.set_file_contents("/bursts", b"x" * 600)


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("signature", "ApplicationVerificationFailed.*0xe8008018"),
        ("profile_expired", "ApplicationVerificationFailed.*0xe8008011"),
        ("profile_missing", "ApplicationVerificationFailed.*0xe8008015"),
        ("wrong_slice", "IncorrectArchitecture"),
        ("no_space", "InsufficientSpace"),
    ],
)
async def test_an_install_fails_with_the_installers_words(
    lockdown: UsbmuxLockdownClient, begin: Begin, tmp_path: Path, reason: str, text: str
) -> None:
    await begin("install_error", reason=reason)
    async with InstallationProxyService(lockdown) as proxy:
        with pytest.raises(AppInstallError, match=text):
            await proxy.install_from_local(pack(tmp_path / "soak.ipa"))
        assert BUNDLE_ID not in await proxy.get_apps()


async def test_a_skewed_clock_shows_in_lockdown_and_in_files(
    farm: Farm, lockdown: UsbmuxLockdownClient, begin: Begin
) -> None:
    await begin("clock_skew", seconds=-3600)
    told_s = await lockdown.get_value(key="TimeIntervalSince1970")
    assert told_s == pytest.approx(time.time() - 3600, abs=5)
    async with AfcService(lockdown) as afc:
        await afc.set_file_contents("/old", b"")
        about: dict[str, Any] = await afc.stat("/old")
    assert about["st_mtime"].timestamp() == pytest.approx(told_s, abs=5)
    await farm.faults.mend("vp-01")
    told_s = await lockdown.get_value(key="TimeIntervalSince1970")
    assert told_s == pytest.approx(time.time(), abs=5)


async def test_a_battery_drains_at_its_rate(
    farm: Farm, lockdown: UsbmuxLockdownClient, begin: Begin
) -> None:
    await begin("battery_drain", from_percent=50, percent_per_min=1e9)
    battery = await lockdown.get_value("com.apple.mobile.battery")
    assert (battery["BatteryCurrentCapacity"], battery["BatteryIsCharging"]) == (0, False)
    async with DiagnosticsService(lockdown) as diagnostics:
        registry = await diagnostics.get_battery()
    assert registry is not None
    assert (registry["CurrentCapacity"], registry["AtCriticalLevel"]) == (0, True)
    await farm.faults.mend("vp-01")
    assert (await lockdown.get_value("com.apple.mobile.battery"))["BatteryIsCharging"] is True


class Crashes:
    """Crashes an app again and again, and reads what is left through the client."""

    def __init__(self, phone: VirtualPhone, manager: CrashReportsManager) -> None:
        self._phone, self.manager = phone, manager

    async def crash(self) -> None:
        machine = self._phone.machine
        pid = await machine.launch("dev.fleet.virtual.notepad", {}, [], kill_existing=True)
        machine.kernel.send_signal(pid, signal.SIGSEGV)
        await until(lambda: not machine.kernel.processes())

    async def names(self, path: str = "/") -> list[str]:
        listed = await self.manager.ls(path, depth=1)
        return [name for name in listed if "Notepad" in name]

    async def read(self, name: str) -> bytes:
        content: bytes = await self.manager.afc.get_file_contents(name)
        return content


@pytest.fixture
async def crashes(phone: VirtualPhone, lockdown: UsbmuxLockdownClient) -> AsyncIterator[Crashes]:
    async with CrashReportsManager(lockdown) as manager:
        yield Crashes(phone, manager)


async def test_a_whole_report_can_be_parsed(crashes: Crashes) -> None:
    await crashes.crash()
    (name,) = await crashes.names()
    head, body = (await crashes.read(name)).split(b"\n", 1)
    assert json.loads(head)["bug_type"] == "309"
    document = json.loads(body)
    assert document["exception"]["signal"] == "SIGSEGV"
    assert len(document["threads"]) > 1
    assert len(document["usedImages"]) > 1


async def test_a_corrupt_report_is_there_and_is_no_report(crashes: Crashes, begin: Begin) -> None:
    await begin("reports", mode="corrupt")
    await crashes.crash()
    (name,) = await crashes.names()
    with pytest.raises(ValueError, match=r"."):
        json.loads((await crashes.read(name)).split(b"\n", 1)[1])


async def test_a_half_report_becomes_whole(crashes: Crashes, begin: Begin) -> None:
    await begin("reports", mode="half", delay_s=0.05)
    await crashes.crash()
    sizes: list[int] = []
    while not sizes or sizes[-1] == sizes[0]:
        for name in await crashes.names():
            size = len(await crashes.read(name))
            sizes += [size] if not sizes or size != sizes[-1] else []
    assert sizes[1] in {2 * sizes[0], 2 * sizes[0] + 1}


async def test_a_missing_report_leaves_nothing(crashes: Crashes, begin: Begin) -> None:
    await begin("reports", mode="missing")
    await crashes.crash()
    assert await crashes.names() == []


async def test_a_late_report_appears_when_its_time_has_come(
    crashes: Crashes, phone: VirtualPhone, lockdown: UsbmuxLockdownClient, begin: Begin
) -> None:
    await begin("reports", delay_s=0.3)
    assert await lockdown.get_value("dev.fleet.virtual", "ReportDelaySeconds") == 0.3
    began_s = time.monotonic()
    await crashes.crash()
    while not await crashes.names():
        assert time.monotonic() - began_s < 5
    assert time.monotonic() - began_s > 0.3


async def test_reports_that_a_reboot_interrupts_are_written_before(
    farm: Farm, crashes: Crashes, phone: VirtualPhone, begin: Begin
) -> None:
    await begin("reports", delay_s=60.0)
    await crashes.crash()
    await phone.machine.power_off()
    phone.machine.boot()
    assert len(await crashes.names()) == 1


async def test_synced_and_retired_reports_have_other_names(crashes: Crashes, begin: Begin) -> None:
    await crashes.crash()
    await begin("reports", mode="retired")
    assert await crashes.names() == []
    assert len(await crashes.names("/Retired")) == 1
    await crashes.crash()
    await begin("reports", mode="synced")
    (name,) = await crashes.names()
    assert name.endswith(".ips.synced")


async def test_the_oldest_of_many_reports_is_retired(crashes: Crashes, begin: Begin) -> None:
    for _ in range(26):
        await crashes.crash()
    assert len(await crashes.names()) == 25
    assert len(await crashes.names("/Retired")) == 1
