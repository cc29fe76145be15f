"""Packs apps as `.ipa`. Equal input gives equal bytes."""

from __future__ import annotations

import plistlib
import shlex
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator.domain.errors import BuildError

REPO_ROOT: Final = Path(__file__).resolve().parents[2]

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the first moment a zip entry can carry
_UNIX: Final = 3  # "made by": mode bits are in the upper half of the attributes
_FOLDER_MODE: Final = 0o040755
_FILE_MODE: Final = 0o100644
_LINK_MODE: Final = 0o120777
_EXECUTABLE_MODE: Final = 0o100755


@dataclass(frozen=True, slots=True)
class AppIdentity:
    """What the app's Info.plist says."""

    name: str = "FleetHarness"  # of bundle and executable
    bundle_id: str = "dev.fleet.harness"
    version: str = "0.1.0"
    build: str = "1"


HARNESS: Final = AppIdentity()


def pack_binary(binary: Path, ipa: Path, identity: AppIdentity = HARNESS) -> Path:
    """Pack a built `harness-host` and return the path of the `.ipa`.

    Raises:
        BuildError: If the binary cannot be read or the archive cannot be written.
    """
    try:
        executable = binary.read_bytes()
    except OSError as error:
        raise BuildError(f"cannot pack {binary}: {error.strerror}") from error
    return _pack(executable, ipa, identity)


def pack_stand_in(
    ipa: Path, identity: AppIdentity = HARNESS, *, interpreter: Path | None = None
) -> Path:
    """Pack the stand-in app and return the path of the `.ipa`.

    Args:
        ipa: Where to write.
        identity: What the Info.plist says.
        interpreter: Python that runs it, an absolute path; this one where it is None.

    Raises:
        BuildError: If the archive cannot be written.
    """
    return _pack(_launcher(interpreter or Path(sys.executable)), ipa, identity)


def _launcher(interpreter: Path) -> bytes:
    """Return a script that becomes the stand-in app.

    `exec` keeps the process id, which the phone watches. `-I` shuts out the environment and the
    working directory, `-S` skips site-packages: the stand-in needs none, and they would weigh.
    """
    program = (
        f"import sys; sys.path.insert(0, {str(REPO_ROOT)!r}); "
        "from orchestrator.harness.standin.__main__ import main; sys.exit(main())"
    )
    command = shlex.join([str(interpreter), "-I", "-S", "-c", program])
    return f"#!/bin/sh\nexec {command}\n".encode()


def _pack(executable: bytes, ipa: Path, identity: AppIdentity) -> Path:
    bundle = f"Payload/{identity.name}.app"
    try:
        ipa.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(ipa, "w") as archive:
            for folder in ("Payload/", f"{bundle}/"):
                archive.writestr(_entry(folder, _FOLDER_MODE), b"")
            archive.writestr(_entry(f"{bundle}/Info.plist", _FILE_MODE), _info_plist(identity))
            archive.writestr(_entry(f"{bundle}/{identity.name}", _EXECUTABLE_MODE), executable)
    except OSError as error:
        raise BuildError(f"cannot write {ipa}: {error.strerror}") from error
    return ipa


def _entry(name: str, mode: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.create_system = _UNIX
    entry.external_attr = mode << 16
    entry.compress_type = zipfile.ZIP_STORED if name.endswith("/") else zipfile.ZIP_DEFLATED
    return entry


def _info_plist(identity: AppIdentity) -> bytes:
    return plistlib.dumps(
        {
            "CFBundleDevelopmentRegion": "en",
            "CFBundleDisplayName": identity.name,
            "CFBundleExecutable": identity.name,
            "CFBundleIdentifier": identity.bundle_id,
            "CFBundleInfoDictionaryVersion": "6.0",
            "CFBundleName": identity.name,
            "CFBundlePackageType": "APPL",
            "CFBundleShortVersionString": identity.version,
            "CFBundleSupportedPlatforms": ["iPhoneOS"],
            "CFBundleVersion": identity.build,
            "LSRequiresIPhoneOS": True,
            "MinimumOSVersion": "18.0",
            "UIDeviceFamily": [1],
        },
        sort_keys=True,
    )


def pack_app(folder: Path, ipa: Path) -> Path:
    """Pack an `.app` folder as it lies, modes and links kept, and return the path of the `.ipa`.

    Raises:
        BuildError: If it cannot be read or the archive cannot be written.
    """
    try:
        ipa.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(ipa, "w") as archive:
            archive.writestr(_entry("Payload/", _FOLDER_MODE), b"")
            for path in [folder, *sorted(folder.rglob("*"))]:
                name = f"Payload/{path.relative_to(folder.parent).as_posix()}"
                _add(archive, path, name)
    except OSError as error:
        raise BuildError(f"cannot pack {folder} as {ipa}: {error.strerror}") from error
    return ipa


def _add(archive: zipfile.ZipFile, path: Path, name: str) -> None:
    if path.is_symlink():  # frameworks have some; what they point to has its own entry
        archive.writestr(_entry(name, _LINK_MODE), str(path.readlink()))
    elif path.is_dir():
        archive.writestr(_entry(f"{name}/", _FOLDER_MODE), b"")
    else:
        executable = path.stat().st_mode & 0o100
        mode = _EXECUTABLE_MODE if executable else _FILE_MODE
        archive.writestr(_entry(name, mode), path.read_bytes())
