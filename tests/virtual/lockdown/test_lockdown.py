"""lockdownd, usbmuxd and pairing as the real client sees them."""

from __future__ import annotations

import asyncio
import plistlib
import struct
from typing import TYPE_CHECKING, Any

import pytest
from pymobiledevice3 import usbmux
from pymobiledevice3.exceptions import (
    ConnectionFailedError,
    ConnectionTerminatedError,
    DeviceNotFoundError,
    InvalidServiceError,
    MissingValueError,
    NotPairedError,
    PairingDialogResponsePendingError,
    PasswordRequiredError,
    UserDeniedPairingError,
)
from pymobiledevice3.lockdown import UsbmuxLockdownClient, create_using_usbmux

from orchestrator.virtual.settings import TrustAnswer
from tests.virtual.waiting import until

if TYPE_CHECKING:
    from orchestrator.virtual.farm import Farm
    from orchestrator.virtual.phone import VirtualPhone


async def test_both_phones_are_listed_over_usb(farm: Farm) -> None:
    devices = await usbmux.list_devices()
    assert [device.serial for device in devices] == [phone.udid for phone in farm.phones]
    assert all(device.is_usb for device in devices)


async def test_a_session_tells_who_the_phone_is(lockdown: UsbmuxLockdownClient) -> None:
    assert lockdown.paired
    assert lockdown.product_type == "iPhone14,7"
    assert lockdown.product_version == "18.5"
    assert lockdown.product_build_version == "22F76"
    values = lockdown.all_values
    assert values["DeviceName"] == "vp-01"
    assert values["HardwareModel"] == "D27AP"
    assert values["UniqueChipID"] == int(values["UniqueDeviceID"].split("-")[1], 16)


async def test_the_domains_that_hosts_ask_for_are_there(lockdown: UsbmuxLockdownClient) -> None:
    battery = await lockdown.get_value("com.apple.mobile.battery")
    assert battery["BatteryCurrentCapacity"] == 87
    usage = await lockdown.get_value("com.apple.disk_usage")
    assert 0 < usage["AmountDataAvailable"] < usage["TotalDiskCapacity"]
    assert await lockdown.get_developer_mode_status() is True


async def test_the_phone_says_that_it_is_virtual(lockdown: UsbmuxLockdownClient) -> None:
    assert await lockdown.get_value("dev.fleet.virtual") == {
        "ReportDelaySeconds": 0.0,
        "Virtual": True,
        "MemoryScale": 32,
        "Model": "iPhone 14",
    }
    assert await lockdown.get_value("dev.fleet.virtual", "Virtual") is True


async def test_a_missing_value_is_an_error(lockdown: UsbmuxLockdownClient) -> None:
    with pytest.raises(MissingValueError):
        await lockdown.get_value(None, "Nope")
    with pytest.raises(MissingValueError):
        await lockdown.get_value("com.apple.nope", "Nope")


async def test_values_can_be_set_and_the_name_is_one(
    lockdown: UsbmuxLockdownClient, phone: VirtualPhone
) -> None:
    await lockdown.set_value("rack 3", key="DeviceName")
    assert phone.settings.name == "rack 3"
    assert await lockdown.get_value(key="DeviceName") == "rack 3"
    await lockdown.set_value(7, "com.apple.mobile.battery", "Mark")
    assert await lockdown.get_value("com.apple.mobile.battery", "Mark") == 7


async def test_a_connection_that_is_idle_too_long_is_dropped(
    lockdown: UsbmuxLockdownClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.virtual.lockdown.daemon.IDLE_LIMIT_S", 0.05)
    client = await create_using_usbmux(serial=lockdown.identifier, autopair=False)
    assert client.service is not None
    async with asyncio.timeout(5):
        assert await client.service.reader.read() == b""
    assert await client.get_value(key="DeviceName") == "vp-01"  # it connects anew
    await client.close()


async def test_a_phone_in_recovery_mode_is_gone(
    farm: Farm, phone: VirtualPhone, lockdown: UsbmuxLockdownClient
) -> None:
    await lockdown.enter_recovery()  # type: ignore[no-untyped-call]
    await until(lambda: not farm.mux.is_attached(phone))


async def test_domains_that_tools_print_are_there(lockdown: UsbmuxLockdownClient) -> None:
    for domain in ("com.apple.international", "com.apple.mobile.wireless_lockdown"):
        assert await lockdown.get_value(domain)


async def test_an_unknown_service_is_refused(lockdown: UsbmuxLockdownClient) -> None:
    with pytest.raises(InvalidServiceError):
        await lockdown.start_lockdown_service("com.apple.nope")


async def test_developer_services_need_the_tunnel_since_ios_17(
    lockdown: UsbmuxLockdownClient,
) -> None:
    with pytest.raises(InvalidServiceError):
        await lockdown.start_lockdown_service(
            "com.apple.instruments.remoteserver.DVTSecureSocketProxy"
        )


async def test_a_host_without_a_pair_record_sees_little(farm: Farm, phone: VirtualPhone) -> None:
    phone.pairings.forget_all()
    client = await create_using_usbmux(serial=phone.udid, autopair=False)
    assert not client.paired
    assert "SerialNumber" not in client.all_values
    assert await client.get_value("dev.fleet.virtual", "Virtual") is True
    with pytest.raises(NotPairedError):
        await client.start_lockdown_service("com.apple.afc")
    await client.close()


async def test_a_new_host_pairs_and_comes_in_with_its_own_certificate(
    farm: Farm, phone: VirtualPhone
) -> None:
    phone.pairings.forget_all()
    client = await create_using_usbmux(serial=phone.udid, autopair=True)
    assert client.paired
    service = await client.start_lockdown_service("com.apple.afc")
    await service.close()
    await client.unpair()
    await client.close()
    again = await create_using_usbmux(serial=phone.udid, autopair=False)
    assert not again.paired
    await again.close()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (TrustAnswer.PENDING, PairingDialogResponsePendingError),
        (TrustAnswer.DENIED, UserDeniedPairingError),
        (TrustAnswer.LOCKED, PasswordRequiredError),
    ],
)
async def test_a_phone_that_does_not_trust_says_why(
    farm: Farm, phone: VirtualPhone, answer: TrustAnswer, error: type[Exception]
) -> None:
    phone.pairings.forget_all()
    phone.settings.trust = answer
    with pytest.raises(error):
        await create_using_usbmux(serial=phone.udid, autopair=True, pair_timeout=0.1)


async def test_pairings_survive_a_restart_of_the_farm(farm: Farm, phone: VirtualPhone) -> None:
    first = phone.pairings
    reloaded = type(first)(first._path, first._pki, phone.settings)
    assert reloaded.knows(first._pki.keys.host_id)


async def test_a_closed_port_refuses(farm: Farm) -> None:
    device = (await usbmux.list_devices())[0]
    with pytest.raises(ConnectionFailedError):
        await device.connect(4444)


async def test_an_unplugged_phone_is_gone_and_its_connections_break(
    farm: Farm, phone: VirtualPhone, lockdown: UsbmuxLockdownClient
) -> None:
    service = await lockdown.start_lockdown_service("com.apple.mobile.heartbeat")
    await service.recv_plist()
    await farm.unplug(phone)
    with pytest.raises(ConnectionTerminatedError):
        await service.recv_plist()
    with pytest.raises(DeviceNotFoundError):
        await create_using_usbmux(serial=phone.udid)
    await service.close()


async def test_a_phone_that_is_plugged_in_again_has_a_new_device_id(
    farm: Farm, phone: VirtualPhone
) -> None:
    before = {device.serial: device.devid for device in await usbmux.list_devices()}
    await farm.unplug(phone)
    await farm.plug_in(phone)
    after = {device.serial: device.devid for device in await usbmux.list_devices()}
    assert after.keys() == before.keys()
    assert after[phone.udid] > max(before.values())


async def test_a_listener_hears_of_phones_that_come_and_go(farm: Farm, phone: VirtualPhone) -> None:
    reader, writer = await open_mux(farm)
    writer.write(mux_request({"MessageType": "Listen"}))
    assert (await mux_reply(reader))["Number"] == 0
    attached = [(await mux_reply(reader))["Properties"]["SerialNumber"] for _ in farm.phones]
    assert attached == [phone.udid for phone in farm.phones]
    await farm.unplug(phone)
    gone = await mux_reply(reader)
    assert gone["MessageType"] == "Detached"
    await farm.plug_in(phone)
    assert (await mux_reply(reader))["Properties"]["SerialNumber"] == phone.udid
    writer.close()


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 16,
        struct.pack("<IIII", 20, 1, 8, 1) + b"nope",
        struct.pack("<IIII", 16, 0, 1, 1),
        struct.pack("<IIII", 4, 1, 8, 1),
    ],
)
async def test_a_client_that_sends_nonsense_is_dropped_and_others_are_served(
    farm: Farm, data: bytes
) -> None:
    reader, writer = await open_mux(farm)
    writer.write(data)
    async with asyncio.timeout(5):
        await reader.read()
    writer.close()
    assert len(await usbmux.list_devices()) == 2


@pytest.mark.parametrize("record_id", ["../../etc/passwd", "", 7, None])
async def test_pair_record_ids_are_never_paths(farm: Farm, record_id: object) -> None:
    reader, writer = await open_mux(farm)
    fields = {} if record_id is None else {"PairRecordID": record_id}
    for kind in ("ReadPairRecord", "SavePairRecord", "DeletePairRecord"):
        writer.write(mux_request({"MessageType": kind, "PairRecordData": b"x", **fields}))
        assert (await mux_reply(reader))["Number"] != 0
    writer.close()


async def test_a_muted_service_accepts_and_never_answers(
    farm: Farm, phone: VirtualPhone, lockdown: UsbmuxLockdownClient
) -> None:
    phone.settings.muted.add("com.apple.mobile.diagnostics_relay")
    service = await lockdown.start_lockdown_service("com.apple.mobile.diagnostics_relay")
    await service.send_plist({"Request": "Goodbye"})
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(service.recv_plist(), 0.1)
    await service.close()


async def open_mux(farm: Farm) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = farm.describe().usbmux.partition(":")
    return await asyncio.open_connection(host, int(port))


def mux_request(message: dict[str, Any]) -> bytes:
    body = plistlib.dumps(message)
    return struct.pack("<IIII", 16 + len(body), 1, 8, 1) + body


async def mux_reply(reader: asyncio.StreamReader) -> dict[str, Any]:
    async with asyncio.timeout(5):
        length, *_ = struct.unpack("<IIII", await reader.readexactly(16))
        reply: dict[str, Any] = plistlib.loads(await reader.readexactly(length - 16))
    return reply


async def test_a_host_with_junk_for_a_certificate_is_not_paired_and_harms_nobody(
    lockdown: UsbmuxLockdownClient, phone: VirtualPhone
) -> None:
    for junk in (b"", b"junk", "ä".encode(), b"-----BEGIN CERTIFICATE-----\nx\n"):
        answer = phone.pairings.pair({"HostID": "X", "HostCertificate": junk})
        assert answer == {"Error": "InvalidPairRecord"}
    await (await lockdown.start_lockdown_service("com.apple.afc")).close()


async def test_values_that_no_plist_can_hold_are_refused_and_odd_texts_come_back(
    lockdown: UsbmuxLockdownClient,
) -> None:
    async def ask(body: bytes) -> dict[str, Any]:
        assert lockdown.service is not None
        await lockdown.service.sendall(struct.pack(">I", len(body)) + body)
        reply: dict[str, Any] = await lockdown.service.recv_plist()
        return reply

    odd = {"Request": "SetValue", "Key": "Mark", "Value": "bell\x07"}
    assert (await ask(plistlib.dumps(odd, fmt=plistlib.FMT_BINARY)))["Result"] == "Success"
    assert await lockdown.get_value(key="Mark") == "bell\x07"
    huge = plistlib.dumps({**odd, "Value": 7}).replace(b"<integer>7", b"<integer>1" + b"0" * 60)
    assert (await ask(huge))["Error"] == "InvalidArgument"
    assert await lockdown.get_value(key="Mark") == "bell\x07"
