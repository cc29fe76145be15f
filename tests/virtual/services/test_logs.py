"""Log streaming and the small services, through the real client."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from pymobiledevice3.exceptions import ConnectionTerminatedError
from pymobiledevice3.services.amfi import AmfiService
from pymobiledevice3.services.diagnostics import DiagnosticsService
from pymobiledevice3.services.installation_proxy import InstallationProxyService
from pymobiledevice3.services.mobile_image_mounter import MobileImageMounterService
from pymobiledevice3.services.os_trace import OsTraceService, parse_syslog_entry
from pymobiledevice3.services.power_assertion import PowerAssertionService

from orchestrator.virtual.kernel import LogLine
from orchestrator.virtual.services.logs.bus import MAX_WAITING_LINES, LogBus
from orchestrator.virtual.services.logs.stream import encode_record
from tests.virtual.apps import pack
from tests.virtual.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from pymobiledevice3.lockdown import UsbmuxLockdownClient

    from orchestrator.virtual.farm import Farm
    from orchestrator.virtual.phone import VirtualPhone


def line(text: str, pid: int = 7, image: str = "Soak") -> LogLine:
    return LogLine(pid, "Soak", image, text)


def test_the_real_client_reads_our_records() -> None:
    record = encode_record(line("grüße\n", image="OSAnalytics"), 1_770_000_000_250_000_000)
    entry = parse_syslog_entry(record)
    assert (entry.pid, entry.message, entry.image_name) == (7, "grüße\n", "OSAnalytics")
    assert entry.filename.endswith("/Soak")
    assert entry.timestamp.timestamp() == 1_770_000_000.25


def test_hostile_text_stays_inside_its_record() -> None:
    entry = parse_syslog_entry(encode_record(line("\ud800" + "x" * 100_000), 0))
    assert len(entry.message) == 60_000


async def test_every_subscriber_gets_the_lines_it_wants() -> None:
    bus = LogBus()
    with bus.subscribe(lambda _: True) as everything, bus.subscribe(lambda x: x.pid == 8) as eight:
        bus.publish(line("a", pid=7))
        bus.publish(line("b", pid=8))
        assert [(await everything.next()).text for _ in range(2)] == ["a", "b"]
        assert (await eight.next()).text == "b"


async def test_a_reader_that_is_too_slow_is_told_how_much_it_lost() -> None:
    bus = LogBus()
    with bus.subscribe(lambda _: True) as subscription:
        for number in range(MAX_WAITING_LINES + 5):
            bus.publish(line(str(number)))
        assert (await subscription.next()).text == "0"
        assert (await subscription.next()).text.startswith("5 lines were lost")
        assert (await subscription.next()).text == "1"


async def test_os_trace_streams_the_lines_of_one_process(
    lockdown: UsbmuxLockdownClient, phone: VirtualPhone
) -> None:
    async with OsTraceService(lockdown) as trace:
        entries = trace.syslog(pid=7)
        first = asyncio.ensure_future(anext(entries))
        await subscribed(phone)
        phone.machine.log.publish(line("other", pid=8))
        phone.machine.log.publish(line("ours", pid=7))
        async with asyncio.timeout(20):
            assert (await first).message == "ours"
        await entries.aclose()


async def test_a_reader_that_leaves_is_forgotten(
    lockdown: UsbmuxLockdownClient, phone: VirtualPhone
) -> None:
    service = await lockdown.start_lockdown_service("com.apple.syslog_relay")
    await subscribed(phone)
    phone.machine.log.publish(line("hello"))
    received = await service.recvall(10)
    assert len(received) == 10
    await service.close()
    await until(lambda: not phone.machine.log._subscriptions)


async def test_the_process_list_has_launchd(lockdown: UsbmuxLockdownClient) -> None:
    async with OsTraceService(lockdown) as trace:
        pids = await trace.get_pid_list()  # type: ignore[no-untyped-call]
    assert pids["Payload"]["1"] == {"ProcessName": "launchd"}


async def subscribed(phone: VirtualPhone) -> None:
    await until(lambda: bool(phone.machine.log._subscriptions))


async def test_the_battery_is_in_the_registry(
    lockdown: UsbmuxLockdownClient, phone: VirtualPhone
) -> None:
    phone.settings.battery.change(42, charging=False, percent_per_min=0)
    async with DiagnosticsService(lockdown) as diagnostics:
        battery = await diagnostics.get_battery()
    assert battery is not None
    assert battery["CurrentCapacity"] == 42
    assert battery["Temperature"] == 2950
    assert battery["InstantAmperage"] < 0
    known = {"AbsoluteCapacity", "AdapterDetails", "BootVoltage", "Serial", "UpdateTime"}
    assert known <= battery.keys()


async def test_a_restart_takes_the_phone_away_and_brings_it_back(
    lockdown: UsbmuxLockdownClient, farm: Farm, phone: VirtualPhone
) -> None:
    booted_s = phone.machine.boot_time_s
    async with DiagnosticsService(lockdown) as diagnostics:
        await diagnostics.restart()  # type: ignore[no-untyped-call]
    await until(lambda: phone.machine.boot_time_s != booted_s and not farm._power_cycles)
    assert await lockdown.get_value(key="DeviceName") == "vp-01"


async def test_image_and_developer_mode_are_reported(
    lockdown: UsbmuxLockdownClient, phone: VirtualPhone
) -> None:
    async with MobileImageMounterService(lockdown) as mounter:
        assert await mounter.is_image_mounted("Personalized")
        assert await mounter.query_developer_mode_status()
        phone.settings.image_mounted = False
        assert not await mounter.is_image_mounted("Personalized")
    phone.settings.developer_mode = False
    await AmfiService(lockdown).reveal_developer_mode_option_in_ui()  # type: ignore[no-untyped-call]
    assert not await lockdown.get_developer_mode_status()


async def test_a_heartbeat_asks_for_an_answer(lockdown: UsbmuxLockdownClient) -> None:
    service = await lockdown.start_lockdown_service("com.apple.mobile.heartbeat")
    assert (await service.recv_plist())["Command"] == "Marco"
    await service.send_plist({"Command": "Polo"})
    await service.close()


async def test_a_notification_reaches_those_who_observe_it(
    lockdown: UsbmuxLockdownClient, tmp_path: Path
) -> None:
    service = await lockdown.start_lockdown_service("com.apple.mobile.notification_proxy")
    installed = {"Command": "RelayNotification", "Name": "com.apple.mobile.application_installed"}
    await service.send_plist({"Command": "ObserveNotification", "Name": installed["Name"]})
    await service.send_plist({"Command": "ObserveNotification", "Name": "bell"})
    await service.send_plist({"Command": "PostNotification", "Name": "bell"})
    assert await service.recv_plist() == {"Command": "RelayNotification", "Name": "bell"}
    async with InstallationProxyService(lockdown) as proxy:
        await proxy.install_from_local(pack(tmp_path / "soak.ipa"))
    assert await service.recv_plist() == installed
    await service.close()


async def test_profiles_are_kept_as_they_are(lockdown: UsbmuxLockdownClient) -> None:
    service = await lockdown.start_lockdown_service("com.apple.misagent")

    async def ask(**request: str | bytes) -> dict[str, Any]:
        answer: dict[str, Any] = await service.send_recv_plist(request)
        return answer

    assert (await ask(MessageType="CopyAll"))["Payload"] == []
    assert (await ask(MessageType="Install", Profile=b"signed"))["Status"] == 0
    assert (await ask(MessageType="CopyAll"))["Payload"] == [b"signed"]
    assert (await ask(MessageType="Install", Profile="no bytes"))["Status"] != 0
    assert (await ask(MessageType="Remove", ProfileID="nope"))["Status"] != 0
    assert (await ask(MessageType="Fly"))["Status"] != 0
    await service.close()


async def test_a_power_assertion_is_granted(lockdown: UsbmuxLockdownClient) -> None:
    async with (
        PowerAssertionService(lockdown) as power,
        asyncio.timeout(20),
        power.create_power_assertion("PreventUserIdleSystemSleep", "soak", 1.0),
    ):
        pass


async def test_os_trace_of_everything_is_never_silent(lockdown: UsbmuxLockdownClient) -> None:
    async with OsTraceService(lockdown) as trace, asyncio.timeout(20):
        entries = trace.syslog()
        assert (await anext(entries)).pid > 0
        await entries.aclose()


async def test_syslog_speaks_at_once_and_goes_on(lockdown: UsbmuxLockdownClient) -> None:
    service = await lockdown.start_lockdown_service("com.apple.syslog_relay")
    async with asyncio.timeout(20):
        first = await service.recvall(3)
    assert first == f"{datetime.now().astimezone():%b}".encode()
    await service.close()


async def test_the_notification_proxy_says_goodbye(lockdown: UsbmuxLockdownClient) -> None:
    service = await lockdown.start_lockdown_service("com.apple.mobile.notification_proxy")
    await service.send_plist({"Command": "ObserveNotification", "Name": "x"})
    assert await service.send_recv_plist({"Command": "Shutdown"}) == {"Command": "ProxyDeath"}
    with pytest.raises(ConnectionTerminatedError):
        await service.recv_plist()
    await service.close()
