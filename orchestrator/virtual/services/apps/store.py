"""Installed apps on disk: `<bundle id>/bundle/<Name>.app` and `<bundle id>/container`."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.kernel import InstalledApp
from orchestrator.virtual.kernel.image import path_on_phone
from orchestrator.virtual.services.apps.system_apps import NOTEPAD_BUNDLE_ID, write_notepad
from orchestrator.virtual.wire import parse_plist

if TYPE_CHECKING:
    from orchestrator.virtual.services.apps.package import Package
    from orchestrator.virtual.wire import Plist

_DEVELOPMENT: Final = "Apple Development: virtual iPhone"
_CONTAINER_FOLDERS: Final = ("Documents", "Library/Caches", "Library/Preferences", "tmp")


@dataclass(frozen=True, slots=True)
class AppRecord:
    """One installed app."""

    bundle_id: str
    folder: Path  # the .app folder
    container: Path
    info: Plist

    @property
    def installed(self) -> InstalledApp:
        """What the kernel needs to launch it."""
        name = str(self.info["CFBundleExecutable"])
        return InstalledApp(
            bundle_id=self.bundle_id,
            name=name,
            executable=self.folder / name,
            sandbox=self.container,
            version=str(self.info.get("CFBundleShortVersionString", "1.0")),
            build=str(self.info.get("CFBundleVersion", "1")),
        )

    def attributes(self, udid: str) -> Plist:
        """Return what installation_proxy says about the app, without its sizes."""
        installed = self.installed
        executable = PurePosixPath(path_on_phone(installed, udid))
        return {
            **self.info,
            "ApplicationType": "User",
            "CFBundleDisplayName": self.info.get("CFBundleDisplayName", installed.name),
            "CFBundleIdentifier": self.bundle_id,
            "CFBundleName": self.info.get("CFBundleName", installed.name),
            "CFBundleShortVersionString": installed.version,
            "CFBundleVersion": installed.build,
            "Container": f"/private/var/mobile/Containers/Data/Application/{executable.parts[-3]}",
            "Entitlements": {
                "application-identifier": self.bundle_id,
                "get-task-allow": self.bundle_id != NOTEPAD_BUNDLE_ID,
            },
            "IsAppClip": False,
            "Path": str(executable.parent),
            "ProfileValidated": True,
            "SignerIdentity": self._signer,
        }

    @property
    def _signer(self) -> str:
        from_store = self.bundle_id == NOTEPAD_BUNDLE_ID
        return "Apple iPhone OS Application Signing" if from_store else _DEVELOPMENT

    def sizes(self) -> Plist:
        """Return the bytes of the bundle and of the container."""
        return {
            "StaticDiskUsage": _tree_bytes(self.folder),
            "DynamicDiskUsage": _tree_bytes(self.container),
        }


class AppStore:
    """All installed apps of one phone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._apps = folder / "apps"
        self._lacks_notepad = not self._apps.exists()
        self._apps.mkdir(parents=True, exist_ok=True)

    def staging(self) -> tempfile.TemporaryDirectory[str]:
        """Return an empty folder on the same file system, to unpack into."""
        return tempfile.TemporaryDirectory(prefix="staging-", dir=self._folder)

    def records(self) -> dict[str, AppRecord]:
        """Return the installed apps by bundle id."""
        if self._lacks_notepad:  # only now: many phones of a farm are never asked
            self._lacks_notepad = False
            self._add_notepad()
        records = {}
        for path in sorted(self._apps.glob("*/bundle/*.app/Info.plist")):
            home = path.parents[2]
            info = parse_plist(path.read_bytes())
            records[home.name] = AppRecord(home.name, path.parent, home / "container", info)
        return records

    def record(self, bundle_id: str) -> AppRecord | None:
        """Return one installed app, or None. A bundle id from a client is no path."""
        return self.records().get(bundle_id)

    def adopt(self, package: Package) -> AppRecord:
        """Move an inspected package in; an older version goes, its container stays."""
        home = self._apps / package.bundle_id
        for name in _CONTAINER_FOLDERS:
            (home / "container" / name).mkdir(parents=True, exist_ok=True)
        bundle = home / "bundle"
        if bundle.exists():
            shutil.rmtree(bundle)
        bundle.mkdir()
        folder = package.folder.rename(bundle / package.folder.name)
        return AppRecord(package.bundle_id, folder, home / "container", package.info)

    def _add_notepad(self) -> None:
        """Install the app that every phone has from the start."""
        bundle = self._apps / NOTEPAD_BUNDLE_ID / "bundle"
        bundle.mkdir(parents=True)
        write_notepad(bundle)
        for name in _CONTAINER_FOLDERS:
            (bundle.parent / "container" / name).mkdir(parents=True)

    def remove(self, bundle_id: str) -> None:
        """Remove an app with its container."""
        shutil.rmtree(self.records()[bundle_id].container.parent)


def _tree_bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
