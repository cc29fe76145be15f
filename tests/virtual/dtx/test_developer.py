"""Launch, output, exit, signals, sysmontap and CoreDevice, through the real client.

The phone's services are reached as through a running tunneld; `test_debian_tools` goes through the
IPv6 tunnel.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
from pymobiledevice3 import usbmux
from pymobiledevice3.dtx import DTXNsError, dtx_on_invoke
from pymobiledevice3.dtx_service import DtxService
from pymobiledevice3.exceptions import (
    CoreDeviceError,
    DeviceFeatureNotSupportedError,
    DisableMemoryLimitError,
    UnrecognizedSelectorError,
)
from pymobiledevice3.lockdown import create_using_usbmux
from pymobiledevice3.remote.core_device.app_service import AppServiceService
from pymobiledevice3.remote.remote_service_discovery import RemoteServiceDiscoveryService
from pymobiledevice3.services.dvt.instruments.device_info import DeviceInfo
from pymobiledevice3.services.dvt.instruments.dvt_provider import DvtProvider
from pymobiledevice3.services.dvt.instruments.process_control import (
    ProcessControl,
    ProcessControlService,
)
from pymobiledevice3.services.dvt.instruments.sysmontap import Sysmontap
from pymobiledevice3.services.installation_proxy import InstallationProxyService

from orchestrator.virtual.farm import ServeOptions, running_farm
from tests.virtual.apps import BUNDLE_ID, ECHO_SERVER, GREETER, pack
from tests.virtual.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pymobiledevice3.dtx import DTXContext
    from pymobiledevice3.lockdown import UsbmuxLockdownClient

    from orchestrator.virtual.farm import Farm
    from orchestrator.virtual.phone import VirtualPhone

LIMIT_S = 10


class WatchedService(ProcessControlService):
    """The client's service, with exits handed out; the library only logs them."""

    IDENTIFIER = ProcessControlService.IDENTIFIER

    def __init__(self, context: DTXContext) -> None:
        super().__init__(context)
        self.exits: asyncio.Queue[tuple[int, int | None, int | None]] = asyncio.Queue()

    @dtx_on_invoke("processWithPID:terminatedWithExitCode:orCrashingSignal:")
    async def _on_process_terminated(
        self, pid: int, exit_code: int | None, crashing_signal: int | None
    ) -> None:
        self.exits.put_nowait((pid, exit_code, crashing_signal))


class Watched(ProcessControl, DtxService[WatchedService]):
    """Process control whose exits can be waited for."""

    async def exit(self) -> tuple[int, int | None, int | None]:
        async with asyncio.timeout(LIMIT_S):
            service = self.service
            assert isinstance(service, WatchedService)
            return await service.exits.get()

    async def lines(self, count: int) -> list[str]:
        received = ""
        async with asyncio.timeout(LIMIT_S):
            async for event in self:
                received += event.message
                if received.count("\n") >= count:
                    break
        return received.splitlines()


@pytest.fixture
async def remote(farm: Farm, phone: VirtualPhone) -> AsyncIterator[RemoteServiceDiscoveryService]:
    host, _, port = farm.describe().tunneld.partition(":")
    listed = await asyncio.to_thread(ask_tunneld, host, int(port))
    (entry,) = listed[phone.udid]
    address = (entry["tunnel-address"], entry["tunnel-port"])
    async with RemoteServiceDiscoveryService(address) as remote:
        yield remote


def ask_tunneld(host: str, port: int) -> dict[str, list[dict[str, Any]]]:
    """Ask as the client does: with a blocking call, so not in the loop that answers."""
    reply = requests.get(f"http://{host}:{port}/", timeout=5)
    reply.raise_for_status()
    document: dict[str, list[dict[str, Any]]] = reply.json()
    return document


@pytest.fixture
async def dvt(remote: RemoteServiceDiscoveryService) -> AsyncIterator[DvtProvider]:
    async with DvtProvider(remote) as dvt:
        yield dvt


@pytest.fixture
async def control(dvt: DvtProvider) -> AsyncIterator[Watched]:
    async with Watched(dvt) as control:
        yield control


async def install(lockdown: UsbmuxLockdownClient, folder: Path, source: str = GREETER) -> None:
    async with InstallationProxyService(lockdown) as proxy:
        await proxy.install_from_local(pack(folder / "soak.ipa", source))


async def test_tunneld_lists_the_phones_and_their_rsd(farm: Farm) -> None:
    host, _, port = farm.describe().tunneld.partition(":")
    listed = await asyncio.to_thread(ask_tunneld, host, int(port))
    assert set(listed) == {phone.udid for phone in farm.phones}
    assert all(entry["tunnel-address"] == "127.0.0.1" for (entry,) in listed.values())


async def test_rsd_says_who_the_phone_is(
    remote: RemoteServiceDiscoveryService, phone: VirtualPhone
) -> None:
    assert remote.udid == phone.udid
    assert remote.product_type == "iPhone14,7"
    assert remote.product_version == "18.5"


async def test_an_app_runs_in_its_container_with_arguments_and_environment(
    lockdown: UsbmuxLockdownClient, control: Watched, tmp_path: Path
) -> None:
    await install(lockdown, tmp_path)
    await control.launch(BUNDLE_ID, arguments=["--seed", "7"], environment={"RUN": "r42"})
    assert await control.lines(3) == ["args --seed 7", "run r42", "home True"]


async def test_a_killed_app_is_reported_with_its_signal(
    lockdown: UsbmuxLockdownClient, control: Watched, tmp_path: Path
) -> None:
    await install(lockdown, tmp_path)
    pid = await control.launch(BUNDLE_ID)
    assert await control.process_identifier_for_bundle_identifier(BUNDLE_ID) == pid
    await control.kill(pid)
    assert await control.exit() == (pid, None, 9)
    assert await control.process_identifier_for_bundle_identifier(BUNDLE_ID) == 0


async def test_an_app_that_exits_is_reported_with_its_code(
    lockdown: UsbmuxLockdownClient, control: Watched, tmp_path: Path
) -> None:
    await install(lockdown, tmp_path, "print('bye', flush=True)\nraise SystemExit(18)\n")
    pid = await control.launch(BUNDLE_ID)
    assert await control.lines(1) == ["bye"]
    assert await control.exit() == (pid, 18, None)


async def test_a_second_launch_replaces_the_first(
    lockdown: UsbmuxLockdownClient, control: Watched, tmp_path: Path
) -> None:
    await install(lockdown, tmp_path)
    first = await control.launch(BUNDLE_ID)
    assert await control.launch(BUNDLE_ID, kill_existing=False) == first
    second = await control.launch(BUNDLE_ID, kill_existing=True)
    assert second != first
    assert await control.exit() == (first, None, 9)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the state of a process from /proc")
async def test_stop_and_continue_use_darwins_numbers(
    lockdown: UsbmuxLockdownClient, control: Watched, tmp_path: Path
) -> None:
    await install(lockdown, tmp_path)
    pid = await control.launch(BUNDLE_ID)
    await control.lines(3)
    await control.suspend(pid)
    await until(lambda: state_of(pid) == "T")
    await control.resume(pid)
    await until(lambda: state_of(pid) == "S")


def state_of(pid: int) -> str:
    """Return the state of a process: T is stopped, S waits."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


async def test_refusals_are_named(
    lockdown: UsbmuxLockdownClient, control: Watched, phone: VirtualPhone, tmp_path: Path
) -> None:
    with pytest.raises(DTXNsError, match="not installed"):
        await control.launch("com.example.nope")
    with pytest.raises(DTXNsError, match="No such process"):
        await control.kill(999_999)
    await install(lockdown, tmp_path)
    with pytest.raises(DTXNsError, match="not a port"):
        await control.launch(BUNDLE_ID, environment={"FLEET_PORT": "none"})
    phone.settings.locked = True
    with pytest.raises(DTXNsError, match="Locked"):
        await control.launch(BUNDLE_ID)


async def test_the_memory_limit_is_not_lifted(
    lockdown: UsbmuxLockdownClient, control: Watched, tmp_path: Path
) -> None:
    await install(lockdown, tmp_path)
    pid = await control.launch(BUNDLE_ID)
    with pytest.raises(DisableMemoryLimitError):
        await control.disable_memory_limit_for_pid(pid)


async def test_an_app_outlives_the_connection_that_launched_it(
    lockdown: UsbmuxLockdownClient, remote: RemoteServiceDiscoveryService, tmp_path: Path
) -> None:
    await install(lockdown, tmp_path)
    async with DvtProvider(remote) as dvt, Watched(dvt) as control:
        pid = await control.launch(BUNDLE_ID)
    async with DvtProvider(remote) as dvt, Watched(dvt) as control:
        assert await control.process_identifier_for_bundle_identifier(BUNDLE_ID) == pid
        await control.service.startObservingPid_(pid)
        await control.kill(pid)
        assert await control.exit() == (pid, None, 9)


async def test_the_phones_end_kills_its_apps(
    lockdown: UsbmuxLockdownClient, control: Watched, farm: Farm, tmp_path: Path
) -> None:
    await install(lockdown, tmp_path)
    pid = await control.launch(BUNDLE_ID)
    await farm.switch_off(farm.phones[0])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_installing_over_a_running_app_ends_it(
    lockdown: UsbmuxLockdownClient, control: Watched, tmp_path: Path
) -> None:
    await install(lockdown, tmp_path)
    pid = await control.launch(BUNDLE_ID)
    await install(lockdown, tmp_path)
    assert await control.exit() == (pid, None, 9)


async def test_an_apps_port_is_reached_through_usbmux(
    lockdown: UsbmuxLockdownClient, control: Watched, phone: VirtualPhone, tmp_path: Path
) -> None:
    await install(lockdown, tmp_path, ECHO_SERVER)
    await control.launch(BUNDLE_ID, environment={"FLEET_PORT": "9001"})
    assert await control.lines(1) == ["listening"]
    device = await usbmux.select_device(phone.udid)
    assert device is not None
    socket = await device.connect(9001)
    reader, writer = await asyncio.open_connection(sock=socket)
    writer.write(b"hello" * 50_000)
    async with asyncio.timeout(LIMIT_S):
        assert await reader.readexactly(250_000) == b"hello" * 50_000
    writer.close()
    await writer.wait_closed()


async def test_sysmontap_measures_footprint_in_phone_bytes(
    lockdown: UsbmuxLockdownClient, control: Watched, dvt: DvtProvider, tmp_path: Path
) -> None:
    source = "import time\nheld = bytearray(b'x') * (8 << 20)\nprint('held', flush=True)\n"
    await install(lockdown, tmp_path, source + "time.sleep(60)\n")
    pid = await control.launch(BUNDLE_ID)
    await control.lines(1)
    async with await Sysmontap.create(dvt, 20) as tap, asyncio.timeout(LIMIT_S):
        async for rows in tap.iter_processes():
            row = next(row for row in rows if row["pid"] == pid)
            assert row["physFootprint"] > 32 * (8 << 20)
            if row["cpuUsage"] is not None:
                break


async def test_sysmontap_tells_the_phones_memory_in_the_order_asked_for(
    dvt: DvtProvider, phone: VirtualPhone
) -> None:
    async with Sysmontap(dvt, ["name"], ["vmUsedCount", "physMemSize", "nope"], 20) as tap:
        async with asyncio.timeout(LIMIT_S):
            async for row in tap:
                if "System" in row:
                    break
    used_pages, physical_bytes, unknown = row["System"]
    assert 0 < used_pages < physical_bytes // 16_384
    assert (physical_bytes, unknown) == (phone.identity.model.physical_memory_bytes, None)


async def test_device_info_lists_what_runs(
    lockdown: UsbmuxLockdownClient, control: Watched, dvt: DvtProvider, tmp_path: Path
) -> None:
    await install(lockdown, tmp_path)
    pid = await control.launch(BUNDLE_ID)
    async with DeviceInfo(dvt) as info:
        listed = {process["pid"]: process["name"] for process in await info.proclist()}
        assert (listed[1], listed[pid]) == ("launchd", "Soak")
        assert {"SpringBoard", "backboardd", "lockdownd"} <= set(listed.values())
        assert await info.is_running_pid(pid)
        assert not await info.is_running_pid(999_999)
        assert (await info.execname_for_pid(pid)).endswith("/Soak")
        system = await info.system_information()  # type: ignore[no-untyped-call]
        assert system["_productVersion"] == "18.5"
        with pytest.raises(UnrecognizedSelectorError):
            await info.trace_codes()  # type: ignore[no-untyped-call]


async def test_core_device_launches_lists_and_signals(
    lockdown: UsbmuxLockdownClient,
    remote: RemoteServiceDiscoveryService,
    phone: VirtualPhone,
    tmp_path: Path,
) -> None:
    await install(lockdown, tmp_path)
    async with AppServiceService(remote) as apps, asyncio.timeout(LIMIT_S):
        launched = await apps.launch_application(BUNDLE_ID, environment={"RUN": "x"})
        pid = launched["processToken"]["processIdentifier"]
        assert pid in [p["processIdentifier"] for p in await apps.list_processes()]
        assert BUNDLE_ID in [app["bundleIdentifier"] for app in await apps.list_apps()]
        await apps.send_signal_to_process(pid, 9)
        await until(lambda: not phone.machine.kernel.processes())
        assert pid not in [p["processIdentifier"] for p in await apps.list_processes()]
        with pytest.raises(CoreDeviceError, match="not installed"):
            await apps.launch_application("com.example.nope")
        with pytest.raises(CoreDeviceError, match="No such process"):
            await apps.send_signal_to_process(999_999, 9)
        with pytest.raises(DeviceFeatureNotSupportedError):
            await apps.invoke("com.apple.coredevice.feature.fly")


async def test_classic_services_are_in_the_tunnel_too(
    lockdown: UsbmuxLockdownClient, remote: RemoteServiceDiscoveryService, tmp_path: Path
) -> None:
    await install(lockdown, tmp_path)
    async with InstallationProxyService(remote) as proxy:
        assert BUNDLE_ID in await proxy.get_apps()
    assert await remote.get_value("dev.fleet.virtual", "Virtual") is True


async def test_a_phone_with_ios_16_serves_dvt_on_lockdown_and_is_not_in_tunneld(
    state: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = ServeOptions(phones=[("iPhone 14", "16.7.10")], folder=state)
    async with running_farm(options) as farm:
        monkeypatch.setenv("USBMUXD_SOCKET_ADDRESS", farm.describe().usbmux)
        host, _, port = farm.describe().tunneld.partition(":")
        assert await asyncio.to_thread(ask_tunneld, host, int(port)) == {}
        async with await create_using_usbmux(serial=farm.phones[0].udid) as lockdown:
            async with InstallationProxyService(lockdown) as proxy:
                package = pack(tmp_path / "soak.ipa", info={"MinimumOSVersion": "16.0"})
                await proxy.install_from_local(package)
            async with DvtProvider(lockdown) as dvt, Watched(dvt) as control:
                pid = await control.launch(BUNDLE_ID)
                await control.kill(pid)
                assert await control.exit() == (pid, None, 9)
