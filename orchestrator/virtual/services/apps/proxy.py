"""com.apple.mobile.installation_proxy: lists, installs and removes apps."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from orchestrator.virtual.services.afc.confinement import Confinement
from orchestrator.virtual.services.apps.package import InstallRefusedError, inspect, unpack
from orchestrator.virtual.services.apps.system_apps import SYSTEM_APPS
from orchestrator.virtual.services.notifications import APP_INSTALLED, APP_UNINSTALLED

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from orchestrator.virtual.identity import Identity
    from orchestrator.virtual.services.apps.package import Package
    from orchestrator.virtual.services.apps.store import AppRecord, AppStore
    from orchestrator.virtual.settings import Settings
    from orchestrator.virtual.wire import Plist, Stream

_SIZES: Final = frozenset({"StaticDiskUsage", "DynamicDiskUsage"})


class AppKiller(Protocol):
    """Ends running apps; installing over a running app or removing it does that."""

    async def kill_app(self, bundle_id: str) -> None:
        """Kill the app if it runs, and wait for its end."""

    async def uninstall(self, bundle_id: str) -> None:
        """Remove an app with its container; one that is not there is no error."""


class InstallationProxy:
    """The service."""

    def __init__(
        self,
        apps: AppStore,
        media: Path,
        identity: Identity,
        settings: Settings,
        killer: AppKiller,
        post: Callable[[str], None],
    ) -> None:
        self._post = post
        self._apps, self._media, self._settings = apps, media, settings
        self._identity, self._killer = identity, killer
        self._commands: dict[str, Callable[[Stream, Plist], Coroutine[Any, Any, None]]] = {
            "Archive": self._no_archives,
            "Browse": self._browse,
            "CheckCapabilitiesMatch": self._match_capabilities,
            "Lookup": self._lookup,
            "LookupArchives": self._no_archives,
            "Install": self._install,
            "Upgrade": self._install,
            "Uninstall": self._uninstall,
        }

    async def serve(self, stream: Stream) -> None:
        """Answer commands until the client leaves."""
        while True:
            request = await stream.read_plist()
            command = self._commands.get(str(request.get("Command")))
            if command is None:
                await stream.send_plist(_error("UnknownCommand", "no such command"))
                continue
            try:
                await command(stream, request)
            except InstallRefusedError as refusal:
                await stream.send_plist(_error(refusal.code, refusal.text))

    async def _lookup(self, stream: Stream, request: Plist) -> None:
        found = self._select(_options(request), default_type="Any")
        await stream.send_plist({"Status": "Complete", "LookupResult": found})

    async def _match_capabilities(self, stream: Stream, request: Plist) -> None:
        wanted = request.get("Capabilities")
        names = wanted if isinstance(wanted, list | dict) else []
        result = {"CapabilitiesMatch": True, "MatchedCapabilities": {str(n): True for n in names}}
        await stream.send_plist({"Status": "Complete", "LookupResult": result})

    async def _no_archives(self, stream: Stream, request: Plist) -> None:
        """Answer about archives of apps, which went with iOS 9."""
        if request.get("Command") == "LookupArchives":
            await stream.send_plist({"Status": "Complete", "LookupResult": {}})
        else:
            await stream.send_plist(_error("APIInternalError", "archives are not supported"))

    async def _browse(self, stream: Stream, request: Plist) -> None:
        found = list(self._select(_options(request), default_type="User").values())
        if found:
            batch = {
                "Status": "BrowsingApplications",
                "CurrentAmount": len(found),
                "CurrentIndex": 0,
                "CurrentList": found,
                "Total": len(found),
            }
            await stream.send_plist(batch)
        await stream.send_plist({"Status": "Complete"})

    def _select(self, options: Plist, default_type: str) -> dict[str, Plist]:
        """Return the attributes of the apps a client asks for."""
        kind, names = options.get("ApplicationType", default_type), options.get("ReturnAttributes")
        found: dict[str, Plist] = {}
        if kind in {"Any", "User"}:
            for bundle_id, record in self._apps.records().items():
                found[bundle_id] = self._attributes(record, names)
        if kind in {"Any", "System"}:
            for bundle_id, app in SYSTEM_APPS.items():
                found[bundle_id] = _chosen(app.attributes(self._identity.build), names)
        wanted = options.get("BundleIDs")
        if isinstance(wanted, list):
            found = {bundle_id: found[bundle_id] for bundle_id in wanted if bundle_id in found}
        return found

    def _attributes(self, record: AppRecord, names: object) -> Plist:
        attributes = record.attributes(self._identity.udid)
        if isinstance(names, list) and _SIZES.intersection(map(str, names)):
            attributes |= record.sizes()
        return _chosen(attributes, names)

    async def _install(self, stream: Stream, request: Plist) -> None:
        archive = self._package_path(request)
        with self._apps.staging() as staging:
            await _progress(stream, "CreatingStagingDirectory", 5)
            await _progress(stream, "ExtractingPackage", 15)
            folder = await asyncio.to_thread(unpack, archive, Path(staging))
            await _progress(stream, "InspectingPackage", 20)
            package = await asyncio.to_thread(inspect, folder, self._identity.os)
            await _progress(stream, "PreflightingApplication", 30)
            await _progress(stream, "VerifyingApplication", 40)
            self._refuse_if_told()
            await self._adopt(stream, package)
        self._post(APP_INSTALLED)
        await stream.send_plist({"Status": "Complete"})

    def _refuse_if_told(self) -> None:
        refusal = self._settings.install_refusal
        if refusal is not None:
            raise InstallRefusedError(refusal.code, refusal.text)

    async def _adopt(self, stream: Stream, package: Package) -> None:
        await _progress(stream, "CreatingContainer", 50)
        await _progress(stream, "InstallingApplication", 60)
        await self._killer.kill_app(package.bundle_id)
        self._apps.adopt(package)
        await _progress(stream, "PostflightingApplication", 70)
        await _progress(stream, "SandboxingApplication", 80)
        await _progress(stream, "GeneratingApplicationMap", 90)

    def _package_path(self, request: Plist) -> Path:
        name = request.get("PackagePath")
        if not isinstance(name, str):
            raise InstallRefusedError("MissingPackagePath", "the request names no package")
        try:
            path = Confinement.of(self._media).followed(name.encode())
        except (OSError, ValueError) as error:
            raise InstallRefusedError("PathConversionFailed", str(error)) from error
        if not path.is_file():
            raise InstallRefusedError("PackageExtractionFailed", f"there is no file {name!r}")
        return path

    async def _uninstall(self, stream: Stream, request: Plist) -> None:
        bundle_id = str(request.get("ApplicationIdentifier"))
        await _progress(stream, "RemovingApplication", 50)
        if bundle_id in SYSTEM_APPS:
            raise InstallRefusedError("APIInternalError", f"{bundle_id} is part of the system")
        # An app that is not there is no error on a phone either.
        await self._killer.uninstall(bundle_id)
        self._post(APP_UNINSTALLED)
        await stream.send_plist({"Status": "Complete"})


def _chosen(attributes: Plist, names: object) -> Plist:
    if not isinstance(names, list):
        return attributes
    return {name: attributes[name] for name in map(str, names) if name in attributes}


async def _progress(stream: Stream, status: str, percent: int) -> None:
    await stream.send_plist({"Status": status, "PercentComplete": percent})


def _options(request: Plist) -> Plist:
    options = request.get("ClientOptions")
    return options if isinstance(options, dict) else {}


def _error(code: str, text: str) -> Plist:
    return {"Error": code, "ErrorDescription": text}
