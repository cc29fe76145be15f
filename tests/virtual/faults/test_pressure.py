"""What apps feel: heat, warnings, shortage, the watchdog. Seen by the app and by the client."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from pymobiledevice3.remote.core_device.app_service import AppServiceService
from pymobiledevice3.remote.xpc_message import XpcInt64Type
from pymobiledevice3.services.crash_reports import CrashReportsManager
from pymobiledevice3.services.dvt.instruments.condition_inducer import ConditionInducer
from pymobiledevice3.services.dvt.instruments.dvt_provider import DvtProvider
from pymobiledevice3.services.dvt.instruments.notifications import Notifications
from pymobiledevice3.services.dvt.instruments.process_control import ProcessControl
from pymobiledevice3.services.installation_proxy import InstallationProxyService

from orchestrator.virtual.faults.base import FaultError
from tests.virtual.apps import BUNDLE_ID, pack
from tests.virtual.remote import connected
from tests.virtual.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from pymobiledevice3.lockdown import UsbmuxLockdownClient

    from orchestrator.virtual.farm import Farm
    from orchestrator.virtual.phone import VirtualPhone
    from tests.virtual.faults.conftest import Begin

TELL = """
import sys
print("ready", flush=True)
for line in sys.stdin:
    print(line.strip(), flush=True)
"""
LIMIT_S = 10


class App:
    """An app that prints the conditions that it is told."""

    def __init__(self, phone: VirtualPhone, pid: int) -> None:
        self._phone, self.pid, self.lines = phone, pid, list[str]()
        self.end: tuple[int | None, int | None] | None = None
        phone.machine.kernel.listen(pid, self)

    def output(self, pid: int, line: str) -> None:
        self.lines.append(line)

    def exited(self, pid: int, exit_code: int | None, signal: int | None) -> None:
        self.end = (exit_code, signal)

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines if line.startswith("{")]

    async def is_told(self, **condition: object) -> None:
        """Wait until the app was told a condition."""
        await until(lambda: any(line.items() >= condition.items() for line in self.told()))


@pytest.fixture
async def app(phone: VirtualPhone, lockdown: UsbmuxLockdownClient, tmp_path: Path) -> App:
    async with InstallationProxyService(lockdown) as proxy:
        await proxy.install_from_local(pack(tmp_path / "soak.ipa", TELL))
    app = App(phone, await phone.machine.launch(BUNDLE_ID, {}, [], kill_existing=True))
    await until(lambda: "ready" in app.lines)
    return app


async def reports(lockdown: UsbmuxLockdownClient, start: str) -> list[dict[str, Any]]:
    """Return the bodies of the reports that are there."""
    async with CrashReportsManager(lockdown) as manager:
        names = [name for name in await manager.ls() if name.startswith(f"/{start}")]
        texts = [await manager.afc.get_file_contents(name) for name in names]
    return [json.loads(text.split(b"\n", 1)[1]) for text in texts]


async def test_heat_follows_its_curve_and_the_app_is_told(
    farm: Farm, phone: VirtualPhone, app: App, begin: Begin
) -> None:
    steps = [{"after_s": 0.0, "state": "fair"}, {"after_s": 0.01, "state": "critical"}]
    await begin("heat", curve=steps)
    await app.is_told(event="thermal", state="critical")
    assert phone.settings.battery.temperature_centi_c > 4000
    await farm.faults.mend("vp-01")
    await app.is_told(event="thermal", state="nominal")
    states = [line["state"] for line in app.told()]
    assert states == ["fair", "critical", "nominal"]


async def test_a_phone_that_is_hot_already_tells_an_app_at_its_launch(
    phone: VirtualPhone, begin: Begin
) -> None:
    await begin("heat", state="serious")
    await until(lambda: phone.settings.thermal.value == "serious")
    pid = await phone.machine.launch("dev.fleet.virtual.notepad", {}, [], kill_existing=True)
    assert pid in [process.pid for process in phone.machine.kernel.processes()]


async def test_heat_ends_apps_with_the_code_for_cooling_off(
    lockdown: UsbmuxLockdownClient, app: App, begin: Begin
) -> None:
    await begin("heat", state="critical", kills=True)
    await until(lambda: app.end is not None)
    assert app.end == (None, 9)
    (report,) = await reports(lockdown, "Soak-")
    assert report["termination"]["code"] == 0xC00010FF
    assert any("Thermal Level:   12" in line for line in report["termination"]["reasons"])


async def test_the_watchdog_ends_apps_with_its_code(
    lockdown: UsbmuxLockdownClient, app: App, begin: Begin
) -> None:
    await begin("watchdog", event="scene-create", allowance_s=19)
    await until(lambda: app.end is not None)
    (report,) = await reports(lockdown, "Soak-")
    assert report["termination"]["namespace"] == "FRONTBOARD"
    assert report["termination"]["code"] == 0x8BADF00D
    assert "WatchdogEvent: scene-create" in report["termination"]["reasons"]
    assert report["exception"]["signal"] == "SIGKILL"


async def test_a_memory_warning_reaches_the_app_and_those_who_listen(
    farm: Farm, phone: VirtualPhone, app: App, begin: Begin
) -> None:
    async with (
        connected(farm, phone) as remote,
        DvtProvider(remote) as dvt,
        Notifications(dvt) as notifications,
        asyncio.timeout(LIMIT_S),
    ):
        asked = asyncio.ensure_future(anext(aiter(notifications)))
        await asyncio.sleep(0.05)  # the two switches are calls without an answer
        await begin("memory_warning")
        selector, (payload,) = await asked
    assert selector == "memoryLevelNotification:"
    assert payload["pid"] == app.pid
    await app.is_told(event="memory_warning")


async def test_core_device_sends_a_memory_warning_too(
    farm: Farm, phone: VirtualPhone, app: App
) -> None:
    async with connected(farm, phone) as remote, AppServiceService(remote) as service:
        request = {"process": {"processIdentifier": XpcInt64Type(app.pid)}}
        await service.invoke("com.apple.coredevice.feature.sendmemorywarningtoprocess", request)
    await app.is_told(event="memory_warning")


async def test_pressure_takes_idle_daemons_first_and_our_app_last(
    lockdown: UsbmuxLockdownClient, app: App, begin: Begin
) -> None:
    await begin("memory_pressure", depth="idle")
    (first,) = await reports(lockdown, "JetsamEvent")
    killed = {each["name"] for each in first["processes"] if "reason" in each}
    assert "assetsd" in killed
    assert "Soak" not in killed
    assert app.end is None
    await begin("memory_pressure", depth="background")
    assert app.end is None  # it is on the screen
    await begin("memory_pressure", depth="frontmost")
    await until(lambda: app.end is not None)
    events = await reports(lockdown, "JetsamEvent")
    victims = [each for event in events for each in event["processes"] if each["name"] == "Soak"]
    assert [each.get("reason") for each in victims if "reason" in each] == ["vm-pageshortage"]


async def test_an_app_in_the_background_goes_before_the_one_on_the_screen(
    phone: VirtualPhone, app: App, begin: Begin
) -> None:
    await begin("background", suspend_after_s=0.01)
    await app.is_told(event="foreground", value=False)
    await begin("memory_pressure", depth="background")
    await until(lambda: app.end is not None)


async def test_low_power_and_a_draining_battery_are_told(app: App, begin: Begin) -> None:
    await begin("low_power")
    await app.is_told(event="low_power", value=True)
    await begin("battery_drain", from_percent=40, percent_per_min=0)
    await app.is_told(event="battery", level_percent=40, charging=False)


async def test_a_fault_of_apps_needs_an_app(begin: Begin) -> None:
    with pytest.raises(FaultError, match="no app runs"):
        await begin("watchdog")


async def test_a_host_induces_heat_as_long_as_it_is_connected(
    farm: Farm, phone: VirtualPhone, app: App
) -> None:
    async with (
        connected(farm, phone) as remote,
        DvtProvider(remote) as dvt,
        ConditionInducer(dvt) as inducer,
    ):
        groups = {group["identifier"] for group in await inducer.list()}
        assert groups == {"ThermalCondition", "SlowNetworkCondition"}
        await inducer.set("ThermalSerious")
        await app.is_told(event="thermal", state="serious")
        await inducer.set("SlowNetworkLTE")
        assert phone.settings.network_profile == "SlowNetworkLTE"
        await app.is_told(event="thermal", state="nominal")
    await until(lambda: phone.settings.network_profile is None)


async def test_states_of_apps_are_told_to_those_who_listen(farm: Farm, phone: VirtualPhone) -> None:
    async with (
        connected(farm, phone) as remote,
        DvtProvider(remote) as dvt,
        Notifications(dvt) as notifications,
        ProcessControl(dvt) as control,
        asyncio.timeout(LIMIT_S),
    ):
        pid = await control.launch("dev.fleet.virtual.notepad")
        told = aiter(notifications)
        selector, (payload,) = await anext(told)
        assert selector == "applicationStateNotification:"
        assert (payload["pid"], payload["state_description"]) == (pid, "Foreground Running")
        await control.kill(pid)
        _, (payload,) = await anext(told)
        assert payload["state_description"] == "Terminated"
