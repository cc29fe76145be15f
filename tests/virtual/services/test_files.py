"""AFC, house_arrest and crash reports, through the real client."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest
from pymobiledevice3.exceptions import AfcException, AfcFileNotFoundError, AppNotInstalledError
from pymobiledevice3.services.afc import AfcError, AfcService
from pymobiledevice3.services.crash_reports import CrashReportsManager
from pymobiledevice3.services.house_arrest import HouseArrestService
from pymobiledevice3.services.installation_proxy import InstallationProxyService

from tests.virtual.apps import BUNDLE_ID, pack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from pymobiledevice3.lockdown import UsbmuxLockdownClient

    from orchestrator.virtual.phone import VirtualPhone


@pytest.fixture
async def afc(lockdown: UsbmuxLockdownClient) -> AsyncIterator[AfcService]:
    async with AfcService(lockdown) as afc:
        yield afc


async def test_files_are_written_read_renamed_and_removed(afc: AfcService) -> None:
    await afc.makedirs("/a/b")
    await afc.set_file_contents("/a/b/x.bin", b"hello" * 1000)
    assert await afc.get_file_contents("/a/b/x.bin") == b"hello" * 1000
    assert await afc.listdir("/a") == ["b"]
    about = await afc.stat("/a/b/x.bin")
    assert (about["st_size"], about["st_ifmt"]) == (5000, "S_IFREG")
    await afc.rename("/a/b/x.bin", "/a/b/y.bin")
    assert await afc.listdir("/a/b") == ["y.bin"]
    await afc.rm("/a")
    with pytest.raises(AfcFileNotFoundError):
        await afc.stat("/a")


async def test_files_that_are_written_at_once_have_times_in_their_order(
    afc: AfcService, phone: VirtualPhone
) -> None:
    names = [f"/{number}" for number in range(20)]
    for name in names:
        await afc.set_file_contents(name, b"x")
    times_ns = [(phone._media / name[1:]).stat().st_mtime_ns for name in names]
    assert times_ns == sorted(set(times_ns))


async def test_a_file_of_many_megabytes_arrives_whole(afc: AfcService) -> None:
    data = bytes(range(256)) * (9 << 12)
    await afc.set_file_contents("/large.bin", data)
    assert await afc.get_file_contents("/large.bin") == data


async def test_a_file_can_be_sought_and_read_in_parts(afc: AfcService) -> None:
    await afc.set_file_contents("/x", b"0123456789")
    handle = await afc.fopen("/x", "r")
    await afc.fseek(handle, 4)
    assert await afc.fread(handle, 3) == b"456"
    await afc.fclose(handle)
    with pytest.raises(AfcException):
        await afc.fread(handle, 1)


async def test_the_device_info_names_model_and_space(afc: AfcService) -> None:
    info: dict[str, str] = await afc.get_device_info()  # type: ignore[no-untyped-call]
    assert info["Model"] == "iPhone14,7"
    assert int(info["FSFreeBytes"]) < int(info["FSTotalBytes"])


async def test_links_inside_work_and_links_out_are_refused(
    afc: AfcService, phone: VirtualPhone
) -> None:
    await afc.set_file_contents("/x", b"data")
    await afc.link("x", "/link")
    assert await afc.get_file_contents("/link") == b"data"
    assert (await afc.stat("/link"))["LinkTarget"] == "x"
    for target in ("/etc/passwd", "../../pki/keys.json"):
        with pytest.raises(AfcException) as refusal:
            await afc.link(target, "/bad")
        assert refusal.value.status == AfcError.PERM_DENIED


@pytest.mark.parametrize(
    "path", ["/../../../etc/passwd", "/../pairings.plist", "../../../pki/keys.json"]
)
async def test_files_outside_cannot_be_read(afc: AfcService, path: str) -> None:
    with pytest.raises(AfcFileNotFoundError):
        await afc.get_file_contents(path)


async def test_a_link_that_an_app_made_to_the_outside_is_no_way_out(
    afc: AfcService, phone: VirtualPhone
) -> None:
    (phone._media / "way-out").symlink_to(phone._media.parent)
    for attempt in (afc.listdir("/way-out"), afc.get_file_contents("/way-out/pairings.plist")):
        with pytest.raises(AfcException) as refusal:
            await attempt
        assert refusal.value.status == AfcError.PERM_DENIED
    assert (phone._media.parent / "pairings.plist").exists()


async def test_links_that_lead_to_each_other_are_refused(
    afc: AfcService, phone: VirtualPhone
) -> None:
    (phone._media / "a").symlink_to("b")
    (phone._media / "b").symlink_to("a")
    for attempt in (afc.listdir("/a"), afc.get_file_contents("/b/x"), afc.makedirs("/a/c")):
        with pytest.raises(AfcException) as refusal:
            await attempt
        assert refusal.value.status == AfcError.PERM_DENIED


async def test_the_root_itself_stays(afc: AfcService, phone: VirtualPhone) -> None:
    for name in ("/", "/..", "."):
        assert await afc.rm_single(name, force=True) is False
    assert phone._media.is_dir()


async def test_a_request_cut_short_gets_a_status_and_the_next_one_works(
    lockdown: UsbmuxLockdownClient,
) -> None:
    service = await lockdown.start_lockdown_service("com.apple.afc")
    await service.sendall(struct.pack("<8sQQQQ", b"CFA6LPAA", 42, 42, 5, 0x0F) + b"xx")
    assert await service.recvall(48) == struct.pack("<8sQQQQQ", b"CFA6LPAA", 48, 48, 5, 1, 7)
    await service.sendall(struct.pack("<8sQQQQ", b"CFA6LPAA", 40, 40, 6, 0x77))
    assert await service.recvall(48) == struct.pack("<8sQQQQQ", b"CFA6LPAA", 48, 48, 6, 1, 15)
    await service.close()


@pytest.fixture
async def installed(lockdown: UsbmuxLockdownClient, tmp_path: Path) -> None:
    async with InstallationProxyService(lockdown) as proxy:
        await proxy.install_from_local(pack(tmp_path / "soak.ipa"))


async def test_the_container_of_an_app_is_served(
    lockdown: UsbmuxLockdownClient, installed: None, phone: VirtualPhone
) -> None:
    async with await HouseArrestService.create(lockdown, BUNDLE_ID) as container:
        assert await container.listdir("/") == ["Documents", "Library", "tmp"]
        await container.set_file_contents("/Documents/config.json", b"{}")
    sandbox = phone.machine.apps.records()[BUNDLE_ID].container
    assert (sandbox / "Documents" / "config.json").read_bytes() == b"{}"


async def test_the_container_of_an_app_that_is_not_there_is_refused(
    lockdown: UsbmuxLockdownClient,
) -> None:
    with pytest.raises(AppNotInstalledError):
        await HouseArrestService.create(lockdown, "com.example.nope")


async def test_documents_are_vended_only_with_file_sharing(
    lockdown: UsbmuxLockdownClient, installed: None, tmp_path: Path
) -> None:
    vend = {"Command": "VendDocuments", "Identifier": BUNDLE_ID}
    assert await ask(lockdown, vend) == {"Error": "InstallationLookupFailed"}
    shared = pack(tmp_path / "shared.ipa", info={"UIFileSharingEnabled": True})
    async with InstallationProxyService(lockdown) as proxy:
        await proxy.install_from_local(shared)
    async with await HouseArrestService.create(
        lockdown, BUNDLE_ID, documents_only=True
    ) as documents:
        assert await documents.listdir("/") == ["Documents"]
        with pytest.raises(AfcException):
            await documents.listdir("/Library")


async def test_an_unknown_vend_command_is_refused(lockdown: UsbmuxLockdownClient) -> None:
    assert await ask(lockdown, {"Command": "VendAll"}) == {"Error": "UnknownCommand"}


async def ask(lockdown: UsbmuxLockdownClient, request: dict[str, Any]) -> dict[str, Any]:
    service = await lockdown.start_lockdown_service("com.apple.mobile.house_arrest")
    reply: dict[str, Any] = await service.send_recv_plist(request)
    await service.close()
    return reply


async def test_crash_reports_are_listed_pulled_and_cleared(
    lockdown: UsbmuxLockdownClient, phone: VirtualPhone, tmp_path: Path
) -> None:
    (phone._crashes / "JetsamEvent-2026-01-01-000000.ips").write_text("{}\n{}")
    (phone._crashes / "Retired" / "Old-2025.ips").write_text("{}")
    async with CrashReportsManager(lockdown) as reports:
        assert set(await reports.ls()) == {
            "/DiagnosticLogs",
            "/JetsamEvent-2026-01-01-000000.ips",
            "/Retired",
        }
        pulled = tmp_path / "pulled"
        pulled.mkdir()
        await reports.pull(str(pulled), progress_bar=False)
        assert (pulled / "JetsamEvent-2026-01-01-000000.ips").read_text() == "{}\n{}"
        assert (pulled / "Retired" / "Old-2025.ips").exists()
        await reports.clear()
        assert await reports.ls() == []


async def test_the_crash_mover_says_when_it_is_done(lockdown: UsbmuxLockdownClient) -> None:
    service = await lockdown.start_lockdown_service("com.apple.crashreportmover")
    assert await service.recvall(5) == b"ping\0"
    await service.close()
