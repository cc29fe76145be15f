"""Reads an app as it lies: an `.ipa`, or the `.app` folder that Xcode leaves."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from orchestrator.domain.errors import BuildError, UsageError
from orchestrator.harness.signed.macho import Executable, MachError, is_mach, read_executable
from orchestrator.harness.signed.plist import PlistError, read_plist
from orchestrator.harness.signed.profile import Profile, read_profile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

PROFILE_NAME: Final = "embedded.mobileprovision"
_LARGEST_BYTES: Final = 2 * 1024**3  # of one file; beyond it nobody built an app
_REMEDY: Final = "Give the .ipa or .app of an iPhone app"


@dataclass(frozen=True, slots=True)
class SignedApp:
    """An app, and what its parts say. Nothing in it was verified against a certificate."""

    path: Path
    info: Mapping[str, Any]  # Info.plist
    executable: Executable | None  # None: no Mach-O program (an app for virtual phones)
    profile: Profile | None  # None: there is none
    profile_problem: str | None  # why it cannot be read

    @property
    def bundle_id(self) -> str:
        """CFBundleIdentifier."""
        return str(self.info.get("CFBundleIdentifier", ""))

    @property
    def name(self) -> str:
        """CFBundleExecutable, as reports of the phone print it."""
        return str(self.info.get("CFBundleExecutable", ""))


def read_app(path: Path) -> SignedApp:
    """Return the app at a path.

    Raises:
        UsageError: If there is nothing, or it cannot be opened.
        BuildError: If it is no app, or its executable cannot be read.
    """
    try:
        if path.is_dir():
            return _read(path, lambda name: _file(path / name))
        with zipfile.ZipFile(path) as archive:
            root = _app_folder(archive)
            return _read(path, lambda name: _entry(archive, root + name))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}", remedy=_REMEDY) from error
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise BuildError(f"{path}: is no .ipa: {error}", remedy=_REMEDY) from error


def _read(path: Path, content: Callable[[str], bytes | None]) -> SignedApp:
    info = _info(path, content("Info.plist"))
    program = content(str(info["CFBundleExecutable"]))
    if program is None:
        raise BuildError(f"{path}: its executable is missing", remedy=_REMEDY)
    executable = None
    if is_mach(program):
        try:
            executable = read_executable(program)
        except MachError as error:
            raise BuildError(f"{path}: its executable cannot be read: {error}") from error
    data, profile, problem = content(PROFILE_NAME), None, None
    if data is not None:
        try:
            profile = read_profile(data)
        except ValueError as error:
            problem = str(error)
    return SignedApp(path, info, executable, profile, problem)


def _info(path: Path, data: bytes | None) -> Mapping[str, Any]:
    if data is None:
        raise BuildError(f"{path}: has no Info.plist", remedy=_REMEDY)
    try:
        info = read_plist(data)
    except PlistError as error:
        raise BuildError(f"{path}: its Info.plist cannot be read", remedy=_REMEDY) from error
    name = info.get("CFBundleExecutable") if isinstance(info, dict) else None
    if not isinstance(info, dict) or not isinstance(name, str) or not name or "/" in name:
        raise BuildError(f"{path}: its Info.plist names no executable", remedy=_REMEDY)
    found: Mapping[str, Any] = info
    return found


def _app_folder(archive: zipfile.ZipFile) -> str:
    """Return `Payload/X.app/`."""
    for name in archive.namelist():
        parts = name.split("/")
        if len(parts) > 2 and parts[0] == "Payload" and parts[1].endswith(".app"):
            return f"{parts[0]}/{parts[1]}/"
    raise BuildError(f"{archive.filename}: holds no Payload/*.app", remedy=_REMEDY)


def _entry(archive: zipfile.ZipFile, name: str) -> bytes | None:
    try:
        entry = archive.getinfo(name)
    except KeyError:
        return None
    if entry.file_size > _LARGEST_BYTES:
        raise BuildError(f"{archive.filename}: {name} is larger than any app's", remedy=_REMEDY)
    return archive.read(entry)


def _file(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
