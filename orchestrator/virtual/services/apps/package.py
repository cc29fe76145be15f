"""Reads an .ipa the way the installer of an iPhone does, and refuses what that refuses.

The names of refusals are those of installation_proxy.
Source: libimobiledevice, `src/installation_proxy.c`.
"""

from __future__ import annotations

import re
import stat
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from orchestrator.domain.iphone import os_version
from orchestrator.virtual.wire import ProtocolError, parse_plist

if TYPE_CHECKING:
    from orchestrator.virtual.wire import Plist

_BUNDLE_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,154}")
_IPHONE_FAMILY: Final = 1
_MAX_UNPACKED_BYTES: Final = 16 << 30

# What `zipfile` raises for archives that are damaged, encrypted or packed in a way it has not.
_BAD_ARCHIVE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    UnicodeDecodeError,
)


class InstallRefusedError(Exception):
    """The installer refuses a package.

    Attributes:
        code: installation_proxy's name of the error.
        text: What stands in `ErrorDescription`.
    """

    def __init__(self, code: str, text: str) -> None:
        self.code, self.text = code, text
        super().__init__(f"{code}: {text}")


@dataclass(frozen=True, slots=True)
class Package:
    """A package that was unpacked and inspected."""

    folder: Path  # the .app folder
    info: Plist  # its Info.plist
    bundle_id: str


def unpack(archive: Path, target: Path) -> Path:
    """Unpack the .app folder of an .ipa into an empty folder and return it.

    File modes are kept, so an executable stays one.

    Raises:
        InstallRefusedError: PackageExtractionFailed or PackageInspectionFailed.
    """
    try:
        with zipfile.ZipFile(archive) as ipa:
            entries = ipa.infolist()
            name = _app_name(entries)
            _refuse_hostile(entries)
            for entry in entries:
                if PurePosixPath(entry.filename).parts[:2] == ("Payload", name):
                    _extract(ipa, entry, target)
    except _BAD_ARCHIVE as error:
        raise InstallRefusedError("PackageExtractionFailed", str(error)) from error
    return target / "Payload" / name


def inspect(folder: Path, phone_os: str) -> Package:
    """Return what a .app folder holds.

    Args:
        folder: The unpacked .app folder. Its executable gets the executable bit, as installd does.
        phone_os: Version of iOS that the app has to run on.

    Raises:
        InstallRefusedError: With the reason.
    """
    info = _read_info(folder)
    bundle_id = info.get("CFBundleIdentifier")
    if not isinstance(bundle_id, str) or not _BUNDLE_ID.fullmatch(bundle_id):
        raise InstallRefusedError("APIInternalError", _no_bundle_id(folder))
    executable = _executable(folder, info)
    executable.chmod(executable.stat().st_mode | 0o755)
    _refuse_wrong_phone(info, phone_os)
    return Package(folder, info, bundle_id)


def _app_name(entries: list[zipfile.ZipInfo]) -> str:
    names = {
        parts[1]
        for entry in entries
        if len(parts := PurePosixPath(entry.filename).parts) > 2
        and parts[0] == "Payload"
        and parts[1].endswith(".app")
    }
    if len(names) != 1:
        raise InstallRefusedError(
            "PackageInspectionFailed", f"{len(names)} .app folders in Payload, not one"
        )
    return names.pop()


def _refuse_hostile(entries: list[zipfile.ZipInfo]) -> None:
    for entry in entries:
        path = PurePosixPath(entry.filename)
        if path.is_absolute() or ".." in path.parts:
            raise InstallRefusedError("PackageExtractionFailed", f"{path} leads out of the package")
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise InstallRefusedError("PackageExtractionFailed", f"{path} is a symbolic link")
    if sum(entry.file_size for entry in entries) > _MAX_UNPACKED_BYTES:
        raise InstallRefusedError("PackageExtractionFailed", "the package is too large")


def _extract(ipa: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    path = Path(ipa.extract(entry, target))
    mode = stat.S_IMODE(entry.external_attr >> 16) & 0o777
    if mode and not entry.is_dir():
        path.chmod(mode | stat.S_IRUSR | stat.S_IWUSR)


def _read_info(folder: Path) -> Plist:
    try:
        data = (folder / "Info.plist").read_bytes()
        return parse_plist(data) if data else {}  # an empty one is read as one without keys
    except (OSError, ProtocolError) as error:
        raise InstallRefusedError("PackageInspectionFailed", f"Info.plist: {error}") from error


def _no_bundle_id(folder: Path) -> str:
    """Return what a phone says of a bundle without a usable identifier."""
    place = (
        f"/private/var/tmp/com.apple.appinstall.temp/temp.vPhone/Extracted/Payload/{folder.name}"
    )
    reason = f"Failed to get bundle ID from {place}"
    return (
        f'Error Domain=IXErrorDomain Code=13 "{reason}" UserInfo={{NSLocalizedDescription={reason},'
        " NSLocalizedFailureReason=Missing bundle ID.}"
    )


def _executable(folder: Path, info: Plist) -> Path:
    name = info.get("CFBundleExecutable")
    if not isinstance(name, str) or not name or "/" in name or name in {".", ".."}:
        raise InstallRefusedError("MissingBundleExecutable", f"CFBundleExecutable is {name!r}")
    path = folder / name
    if not path.is_file():
        raise InstallRefusedError("MissingBundleExecutable", f"the bundle has no file {name!r}")
    return path


def _refuse_wrong_phone(info: Plist, phone_os: str) -> None:
    minimum = str(info.get("MinimumOSVersion", "0"))
    if os_version(minimum) > os_version(phone_os):
        text = f"the app needs iOS {minimum}, the phone has {phone_os}"
        raise InstallRefusedError("DeviceOSVersionTooLow", text)
    families = info.get("UIDeviceFamily", [_IPHONE_FAMILY])
    if not isinstance(families, list) or _IPHONE_FAMILY not in families:
        raise InstallRefusedError("DeviceFamilyNotSupported", f"UIDeviceFamily is {families!r}")
