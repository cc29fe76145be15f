"""Instruments besides launching and sampling, through the real client."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest
from pymobiledevice3.dtx import DTXNsError
from pymobiledevice3.exceptions import DvtDirListError, ProcessInspectionError
from pymobiledevice3.services.dvt.instruments.application_listing import ApplicationListing
from pymobiledevice3.services.dvt.instruments.condition_inducer import ConditionInducer
from pymobiledevice3.services.dvt.instruments.device_info import DeviceInfo
from pymobiledevice3.services.dvt.instruments.dvt_provider import DvtProvider
from pymobiledevice3.services.dvt.instruments.dyld_metrics import DyldMetrics
from pymobiledevice3.services.dvt.instruments.energy_monitor import EnergyMonitor
from pymobiledevice3.services.dvt.instruments.leaks import Leaks
from pymobiledevice3.services.dvt.instruments.location_simulation import LocationSimulation
from pymobiledevice3.services.dvt.instruments.network_statistics import NetworkStatistics
from pymobiledevice3.services.dvt.instruments.process_control import ProcessControl
from pymobiledevice3.services.dvt.instruments.screenshot import Screenshot
from pymobiledevice3.services.dvt.instruments.sysmontap import Sysmontap
from pymobiledevice3.services.dvt.instruments.vm_tracking import VMTracking
from pymobiledevice3.services.dvt.testmanaged.xcuitest import _TestManagerProvider

from tests.virtual.remote import connected
from tests.virtual.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pymobiledevice3.remote.remote_service_discovery import RemoteServiceDiscoveryService

    from orchestrator.virtual.farm import Farm
    from orchestrator.virtual.phone import VirtualPhone

SAFARI = "com.apple.mobilesafari"
TEST_CHANNEL = "dtxproxy:XCTestManager_IDEInterface:XCTestManager_DaemonConnectionInterface"


@pytest.fixture
async def remote(farm: Farm, phone: VirtualPhone) -> AsyncIterator[RemoteServiceDiscoveryService]:
    async with connected(farm, phone) as remote:
        yield remote


@pytest.fixture
async def dvt(remote: RemoteServiceDiscoveryService) -> AsyncIterator[DvtProvider]:
    async with DvtProvider(remote) as dvt:
        yield dvt


async def test_folders_and_the_network_are_told(dvt: DvtProvider) -> None:
    async with DeviceInfo(dvt) as info:
        assert {"Applications", "Developer", "private", "usr"} <= set(await info.ls("/"))
        with pytest.raises(DvtDirListError):
            await info.ls("/nope")
        network = await info.network_information()  # type: ignore[no-untyped-call]
        assert network["lo0"] == "Loopback"


async def test_apps_of_every_kind_are_listed(dvt: DvtProvider) -> None:
    async with ApplicationListing(dvt) as listing:
        kinds = {app["CFBundleIdentifier"]: app["Type"] for app in await listing.applist()}
    assert kinds["com.apple.stocks.widget"] == "PluginKit"
    assert kinds[SAFARI] == "System"
    assert kinds["dev.fleet.virtual.notepad"] == "User"


async def test_springboard_comes_back_under_a_new_pid(dvt: DvtProvider) -> None:
    async with DeviceInfo(dvt) as info, ProcessControl(dvt) as control:
        before = {each["name"]: each for each in await info.proclist()}["SpringBoard"]
        await control.disable_memory_limit_for_pid(before["pid"])
        await control.kill(before["pid"])
        after = {each["name"]: each for each in await info.proclist()}["SpringBoard"]
    assert before["pid"] != after["pid"]
    assert before["startDate"] < after["startDate"]
    assert isinstance(after["startDate"], dt.datetime)


async def test_an_app_of_apple_is_launched_and_is_not_debuggable(dvt: DvtProvider) -> None:
    async with DeviceInfo(dvt) as info, ProcessControl(dvt) as control:
        pid = await control.launch(SAFARI)
        assert (await info.execname_for_pid(pid)).endswith("/MobileSafari")
        assert not await control.is_debuggable(pid)
        assert await control.process_identifier_for_bundle_identifier(SAFARI) == pid
        await control.kill(pid)
        assert not await info.is_running_pid(pid)


async def test_who_looks_into_a_process_is_refused(dvt: DvtProvider) -> None:
    async with VMTracking(dvt) as tracking, Leaks(dvt) as leaks, DyldMetrics(dvt) as metrics:
        with pytest.raises(ProcessInspectionError, match="must be debuggable"):
            await tracking.snapshot(34)
        with pytest.raises(ProcessInspectionError, match="task port"):
            await leaks.memory_graph(34)
        with pytest.raises(ProcessInspectionError, match="task port"):
            await metrics.capture(34)


async def test_gauges_stand_still(dvt: DvtProvider) -> None:
    async with NetworkStatistics(dvt, [34], interval_ms=1) as gauge:
        sample = await anext(aiter(gauge))
    assert sample[34]["net.rx.bytes"] == 0
    async with EnergyMonitor(dvt, [34]) as gauge:
        assert (await anext(aiter(gauge)))[34]["energy.cost"] == 0


async def test_a_simulated_place_ends_with_the_connection(
    remote: RemoteServiceDiscoveryService, phone: VirtualPhone
) -> None:
    async with DvtProvider(remote) as dvt, LocationSimulation(dvt) as location:
        await location.set(40.69, -74.04)
        assert phone.settings.location == (40.69, -74.04)
    await until(lambda: phone.settings.location is None)


async def test_the_sampler_knows_the_names_that_phones_give(dvt: DvtProvider) -> None:
    async with DeviceInfo(dvt) as info:
        processes = await info.sysmon_process_attributes()
        system = await info.sysmon_system_attributes()
    assert {"physFootprint", "memAnon", "cpuUsage", "responsiblePID"} <= set(processes)
    assert {"physMemSize", "vmFreeCount", "__vmSwapUsage"} <= set(system)
    async with await Sysmontap.create(dvt, 20) as tap:
        rows = await anext(aiter(tap.iter_processes()))
    assert {"SpringBoard", "lockdownd"} <= {row["name"] for row in rows}


async def test_an_unknown_condition_is_refused(dvt: DvtProvider) -> None:
    async with ConditionInducer(dvt) as inducer:
        with pytest.raises(DTXNsError, match="no condition"):
            await inducer.service.enable_condition_with_identifier_profile_identifier_("x", "y")


async def test_what_the_phones_do_not_have_cannot_be_opened(dvt: DvtProvider) -> None:
    with pytest.raises(DTXNsError, match="Unable to open channel"):
        async with Screenshot(dvt) as screen:
            await screen.get_screenshot()


async def test_the_channel_of_testmanagerd_opens(remote: RemoteServiceDiscoveryService) -> None:
    async with _TestManagerProvider(remote) as provider:
        assert await provider.dtx.open_channel(TEST_CHANNEL) is not None
