"""Apps that come with iOS, and one that came from the App Store.

The first are listed and can be launched, and have no files. The last is there because clients
look for some user app that shares its documents.
"""

from __future__ import annotations

import plistlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.virtual.wire import Plist

NOTEPAD_BUNDLE_ID: Final = "dev.fleet.virtual.notepad"

# Ends with its stdin, which is the phone's end; macOS and Linux both have `sh` and `cat`.
_NOTEPAD_PROGRAM: Final = b"#!/bin/sh\nexec cat >/dev/null\n"
_NOTEPAD_INFO: Final = {
    "CFBundleIdentifier": NOTEPAD_BUNDLE_ID,
    "CFBundleExecutable": "Notepad",
    "CFBundleName": "Notepad",
    "CFBundleDisplayName": "Notepad",
    "CFBundleShortVersionString": "2.1",
    "CFBundleVersion": "214",
    "MinimumOSVersion": "16.0",
    "UIDeviceFamily": [1],
    "UIFileSharingEnabled": True,
}


@dataclass(frozen=True, slots=True)
class SystemApp:
    """One app of iOS."""

    bundle_id: str
    name: str  # as the home screen shows it
    executable: str
    container: str | None = None  # the .app that holds it; a plug-in if there is one

    @property
    def folder(self) -> str:
        """Its bundle on the phone."""
        if self.container is not None:
            return f"/Applications/{self.container}.app/PlugIns/{self.executable}.appex"
        return f"/Applications/{self.executable}.app"

    @property
    def path(self) -> str:
        """Its executable on the phone."""
        return f"{self.folder}/{self.executable}"

    def attributes(self, build: str) -> Plist:
        """Return what installation_proxy says about it."""
        return {
            "ApplicationType": "System",
            "CFBundleDisplayName": self.name,
            "CFBundleExecutable": self.executable,
            "CFBundleIdentifier": self.bundle_id,
            "CFBundleName": self.name,
            "CFBundleShortVersionString": "1.0",
            "CFBundleVersion": "1",
            "DTPlatformBuild": build,
            "Entitlements": {"application-identifier": self.bundle_id},
            "IsAppClip": False,
            "IsUpgradeable": False,
            "Path": self.folder,
            "SignerIdentity": "Apple iPhone OS Application Signing",
            "UIDeviceFamily": [1],
        }


SYSTEM_APPS: Final = {
    app.bundle_id: app
    for app in (
        SystemApp("com.apple.AppStore", "App Store", "AppStore"),
        SystemApp("com.apple.DocumentsApp", "Files", "Files"),
        SystemApp("com.apple.Maps", "Maps", "Maps"),
        SystemApp("com.apple.MobileSMS", "Messages", "MobileSMS"),
        SystemApp("com.apple.Preferences", "Settings", "Preferences"),
        SystemApp("com.apple.calculator", "Calculator", "Calculator"),
        SystemApp("com.apple.camera", "Camera", "Camera"),
        SystemApp("com.apple.mobilecal", "Calendar", "MobileCal"),
        SystemApp("com.apple.mobilemail", "Mail", "MobileMail"),
        SystemApp("com.apple.mobilenotes", "Notes", "MobileNotes"),
        SystemApp("com.apple.mobilephone", "Phone", "MobilePhone"),
        SystemApp("com.apple.mobilesafari", "Safari", "MobileSafari"),
        SystemApp("com.apple.mobileslideshow", "Photos", "MobileSlideShow"),
        SystemApp("com.apple.mobiletimer", "Clock", "MobileTimer"),
        SystemApp("com.apple.stocks", "Stocks", "Stocks"),
        SystemApp("com.apple.weather", "Weather", "Weather"),
    )
}

PLUG_INS: Final = (SystemApp("com.apple.stocks.widget", "StocksWidget", "StocksWidget", "Stocks"),)


def write_notepad(staging: Path) -> Path:
    """Write the bundle of the App Store app into a folder and return it."""
    folder = staging / "Notepad.app"
    folder.mkdir()
    (folder / "Info.plist").write_bytes(plistlib.dumps(_NOTEPAD_INFO))
    (folder / "Notepad").write_bytes(_NOTEPAD_PROGRAM)
    (folder / "Notepad").chmod(0o755)
    return folder
