"""Installs a package: own upload and own loop over the answers.

The library's `install_from_local` holds the whole package in memory and draws a progress bar on
stderr that cannot be turned off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio
from pymobiledevice3.services.afc import AfcService
from pymobiledevice3.services.installation_proxy import InstallationProxyService

from orchestrator.device.keeper.lines import printable
from orchestrator.device.pmd3 import afc
from orchestrator.domain.errors import DeviceError
from orchestrator.domain.outcome import Cause

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pymobiledevice3.lockdown import UsbmuxLockdownClient

STAGED: Final = "/PublicStaging/fleet.ipa"
_MAX_TEXT_CHARS: Final = 400
_REMEDIES: Final = {
    "ApplicationVerificationFailed": "The signature does not fit this phone: check the team, the"
    " provisioning profile and that it lists the phone",
    "MismatchedApplicationIdentifierEntitlement": "Another team's app has this bundle id: uninstall"
    " it first",
    "DeviceOSVersionTooLow": "The app needs a newer iOS",
    "PackageExtractionFailed": "The package is damaged: build it again",
    "PackageInspectionFailed": "The package is damaged: build it again",
    "InsufficientStorage": "Free space on the phone",
}


class InstallRefusedError(DeviceError):
    """The phone refused a package; `code` is the phone's own."""

    def __init__(self, alias: str, code: str, description: str) -> None:
        self.code = printable(code)[:_MAX_TEXT_CHARS]
        text = printable(description)[:_MAX_TEXT_CHARS]
        super().__init__(
            alias,
            "install",
            "install",
            f"{self.code}: {text}" if text else self.code,
            cause=Cause.INSTALL_FAILED,
            remedy=_REMEDIES.get(self.code, ""),
        )


async def upload(
    client: UsbmuxLockdownClient, ipa: Path, on_progress: Callable[[str, float], None]
) -> None:
    """Put the package where the phone's installer reads it."""
    total_bytes, sent_bytes = max(1, (await anyio.Path(ipa).stat()).st_size), 0

    def count(chunk_bytes: int) -> None:
        nonlocal sent_bytes
        sent_bytes += chunk_bytes
        on_progress("Uploading", 100 * sent_bytes / total_bytes)

    async with afc.closing(AfcService(client)) as files:
        await afc.store(files, ipa, STAGED, count)


async def install(
    client: UsbmuxLockdownClient,
    alias: str,
    bundle_id: str,
    on_progress: Callable[[str, float], None],
) -> None:
    """Install the uploaded package and look the app up.

    Raises:
        InstallRefusedError: With the phone's code, or if the package held another app.
    """
    request: dict[str, Any] = {"Command": "Install", "ClientOptions": {}, "PackagePath": STAGED}
    async with InstallationProxyService(client) as proxy:
        await proxy.service.send_plist(request)
        await _completed(proxy, alias, on_progress)
        apps = await proxy.get_apps(bundle_identifiers=[bundle_id])
    if bundle_id not in apps:
        raise InstallRefusedError(alias, "WrongBundle", f"the package does not hold {bundle_id}")


async def uninstall(client: UsbmuxLockdownClient, alias: str, bundle_id: str) -> None:
    """Remove an app and its container; one that is not there is no error."""
    async with InstallationProxyService(client) as proxy:
        if bundle_id not in await proxy.get_apps(bundle_identifiers=[bundle_id]):
            return
        request: dict[str, Any] = {"Command": "Uninstall", "ApplicationIdentifier": bundle_id}
        await proxy.service.send_plist(request)
        await _completed(proxy, alias, lambda _stage, _percent: None)


async def _completed(
    proxy: InstallationProxyService, alias: str, on_progress: Callable[[str, float], None]
) -> None:
    while True:
        answer: dict[str, Any] = await proxy.service.recv_plist()
        if "Error" in answer:
            description = str(answer.get("ErrorDescription") or "")
            raise InstallRefusedError(alias, str(answer["Error"]), description)
        stage = printable(str(answer.get("Status", "")))[:64]
        if stage == "Complete":
            on_progress(stage, 100.0)
            return
        percent = answer.get("PercentComplete")
        on_progress(stage, float(percent) if isinstance(percent, int | float) else 0.0)
