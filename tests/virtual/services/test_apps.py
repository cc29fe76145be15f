"""installation_proxy through the real client."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from pymobiledevice3.exceptions import AppInstallError
from pymobiledevice3.services.afc import AfcService
from pymobiledevice3.services.installation_proxy import InstallationProxyService

from orchestrator.virtual.services.apps.system_apps import NOTEPAD_BUNDLE_ID
from tests.virtual.apps import BUNDLE_ID, pack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from pymobiledevice3.lockdown import UsbmuxLockdownClient

    from orchestrator.virtual.phone import VirtualPhone


@pytest.fixture
async def proxy(lockdown: UsbmuxLockdownClient) -> AsyncIterator[InstallationProxyService]:
    async with InstallationProxyService(lockdown) as proxy:
        yield proxy


async def test_an_app_is_installed_and_looked_up(
    proxy: InstallationProxyService, phone: VirtualPhone, tmp_path: Path
) -> None:
    await proxy.install_from_local(pack(tmp_path / "soak.ipa"))
    apps = await proxy.get_apps(bundle_identifiers=[BUNDLE_ID])
    assert apps[BUNDLE_ID]["CFBundleShortVersionString"] == "1.2.3"
    assert apps[BUNDLE_ID]["Path"].endswith("/Soak.app")
    installed = phone.machine.apps.records()[BUNDLE_ID].installed
    assert (installed.name, installed.version, installed.build) == ("Soak", "1.2.3", "7")
    assert installed.executable.stat().st_mode & 0o111


async def test_progress_comes_in_the_order_of_a_phone(
    lockdown: UsbmuxLockdownClient, tmp_path: Path
) -> None:
    replies = await install(lockdown, pack(tmp_path / "soak.ipa").read_bytes())
    percents = [reply["PercentComplete"] for reply in replies[:-1]]
    assert percents == sorted(percents)
    assert replies[0]["Status"] == "CreatingStagingDirectory"
    assert replies[-1] == {"Status": "Complete"}


async def test_an_upgrade_keeps_the_container(
    proxy: InstallationProxyService, phone: VirtualPhone, tmp_path: Path
) -> None:
    await proxy.install_from_local(pack(tmp_path / "one.ipa"))
    kept = phone.machine.apps.records()[BUNDLE_ID].container / "Documents" / "kept"
    kept.write_text("x")
    await proxy.install_from_local(pack(tmp_path / "two.ipa", info={"CFBundleVersion": "8"}))
    record = phone.machine.apps.records()[BUNDLE_ID]
    assert record.installed.build == "8"
    assert kept.exists()


async def test_an_uninstalled_app_is_gone_with_its_container(
    proxy: InstallationProxyService, phone: VirtualPhone, tmp_path: Path
) -> None:
    await proxy.install_from_local(pack(tmp_path / "soak.ipa"))
    container = phone.machine.apps.records()[BUNDLE_ID].container
    await proxy.uninstall(BUNDLE_ID)
    assert BUNDLE_ID not in await proxy.get_apps()
    assert not container.exists()
    await proxy.uninstall(BUNDLE_ID)


async def test_browse_lists_user_apps_with_the_attributes_asked_for(
    proxy: InstallationProxyService, tmp_path: Path
) -> None:
    await proxy.install_from_local(pack(tmp_path / "soak.ipa"))
    attributes = ["CFBundleIdentifier", "StaticDiskUsage", "Nope"]
    apps = await proxy.browse({"ApplicationType": "User", "ReturnAttributes": attributes})
    assert [app["CFBundleIdentifier"] for app in apps] == [BUNDLE_ID, NOTEPAD_BUNDLE_ID]
    assert all(app.keys() == {"CFBundleIdentifier", "StaticDiskUsage"} for app in apps)
    assert all(app["StaticDiskUsage"] > 0 for app in apps)


async def test_system_apps_are_listed_apart_and_stay(proxy: InstallationProxyService) -> None:
    apps = await proxy.get_apps(application_type="System")
    assert {"com.apple.Preferences", "com.apple.mobilesafari"} <= apps.keys()
    assert {app["ApplicationType"] for app in apps.values()} == {"System"}
    with pytest.raises(AppInstallError, match="part of the system"):
        await proxy.uninstall("com.apple.mobilesafari")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"CFBundleIdentifier": None}, "APIInternalError.*Missing bundle ID"),
        ({"CFBundleExecutable": "Nope"}, "MissingBundleExecutable"),
        ({"MinimumOSVersion": "26.0"}, "DeviceOSVersionTooLow"),
    ],
)
async def test_a_bad_package_is_refused_and_nothing_is_left(
    proxy: InstallationProxyService,
    phone: VirtualPhone,
    tmp_path: Path,
    changes: dict[str, Any],
    code: str,
) -> None:
    with pytest.raises(AppInstallError, match=code):
        await proxy.install_from_local(pack(tmp_path / "bad.ipa", info=changes))
    assert list(phone.machine.apps.records()) == [NOTEPAD_BUNDLE_ID]
    assert list(phone.machine.apps._folder.glob("staging-*")) == []


async def test_a_bad_package_leaves_the_older_version_in_place(
    proxy: InstallationProxyService, phone: VirtualPhone, tmp_path: Path
) -> None:
    await proxy.install_from_local(pack(tmp_path / "good.ipa"))
    with pytest.raises(AppInstallError):
        await proxy.install_from_local(
            pack(tmp_path / "bad.ipa", info={"MinimumOSVersion": "26.0"})
        )
    assert phone.machine.apps.records()[BUNDLE_ID].installed.executable.exists()


async def test_a_package_that_is_no_archive_is_refused(lockdown: UsbmuxLockdownClient) -> None:
    replies = await install(lockdown, b"nonsense")
    assert replies[-1]["Error"] == "PackageExtractionFailed"


async def test_an_archive_that_leads_out_is_refused(
    lockdown: UsbmuxLockdownClient, phone: VirtualPhone, tmp_path: Path
) -> None:
    archive = pack(tmp_path / "soak.ipa")
    with zipfile.ZipFile(archive, "a") as ipa:
        ipa.writestr("Payload/Soak.app/../../../../evil", b"x")
    replies = await install(lockdown, archive.read_bytes())
    assert replies[-1]["Error"] == "PackageExtractionFailed"
    assert list(phone._media.parents[2].rglob("evil")) == []


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/PublicStaging/nope.ipa", "PackageExtractionFailed"),
        ("/../pairings.plist", "PackageExtractionFailed"),
        (None, "MissingPackagePath"),
    ],
)
async def test_a_package_path_that_leads_nowhere_is_refused(
    lockdown: UsbmuxLockdownClient, path: str | None, code: str
) -> None:
    request = {"Command": "Install"} | ({} if path is None else {"PackagePath": path})
    service = await lockdown.start_lockdown_service("com.apple.mobile.installation_proxy")
    reply = await service.send_recv_plist(request)
    await service.close()
    assert reply["Error"] == code


async def test_an_unknown_command_is_answered_and_the_next_one_works(
    lockdown: UsbmuxLockdownClient,
) -> None:
    service = await lockdown.start_lockdown_service("com.apple.mobile.installation_proxy")
    assert (await service.send_recv_plist({"Command": "Nope"}))["Error"] == "UnknownCommand"
    options = {"BundleIDs": ["com.example.nope"]}
    reply = await service.send_recv_plist({"Command": "Lookup", "ClientOptions": options})
    assert reply == {"Status": "Complete", "LookupResult": {}}
    await service.close()


async def install(lockdown: UsbmuxLockdownClient, package: bytes) -> list[dict[str, Any]]:
    """Push a package and return every reply of the installer."""
    async with AfcService(lockdown) as afc:
        await afc.set_file_contents("/PublicStaging/x.ipa", package)
    service = await lockdown.start_lockdown_service("com.apple.mobile.installation_proxy")
    await service.send_plist({"Command": "Install", "PackagePath": "PublicStaging/x.ipa"})
    replies: list[dict[str, Any]] = []
    while not replies or replies[-1].keys() & {"PercentComplete"}:
        replies.append(await service.recv_plist())
    await service.close()
    return replies
