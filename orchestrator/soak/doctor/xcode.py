"""What a build for iPhones needs of a Mac: Xcode, a signing identity, profiles, an open keychain.

From Apple's documentation of the tools; not run on a Mac.
"""

from __future__ import annotations

import plistlib
import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.soak.doctor.check import HOST, failed, ok, warning

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from orchestrator.soak.doctor.check import DoctorCheck

COMMAND_LIMIT_S: Final = 20.0
SOON_DAYS: Final = 7
PROFILE_FOLDERS: Final = (
    "Library/Developer/Xcode/UserData/Provisioning Profiles",  # since Xcode 16
    "Library/MobileDevice/Provisioning Profiles",
)
_IDENTITIES: Final = re.compile(r"^\s*(\d+) valid identities found", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said."""

    exit_code: int
    output: str  # stdout, then stderr


def run_command(words: list[str]) -> Answer:
    """Run a command with a limit; one that is not there answers with 127."""
    try:
        done = subprocess.run(
            words, capture_output=True, timeout=COMMAND_LIMIT_S, check=False, text=True
        )
    except FileNotFoundError:
        return Answer(127, f"{words[0]} is not there")
    except subprocess.TimeoutExpired:
        return Answer(124, f"no answer within {COMMAND_LIMIT_S:g} s")
    return Answer(done.returncode, done.stdout + done.stderr)


def xcode_checks(
    udids: Collection[str],
    *,
    is_mac: bool = sys.platform == "darwin",
    run: Callable[[list[str]], Answer] = run_command,
    home: Path | None = None,
    now: datetime | None = None,
) -> Iterator[DoctorCheck]:
    """Yield the checks of a build for these phones."""
    if not is_mac:
        yield failed(
            HOST,
            "toolchain",
            "iPhones are attached, and Xcode runs on a Mac alone",
            "no_xcode",
            "Soak iPhones from a Mac with Xcode 16 or later",
        )
        return
    yield _toolchain(run)
    yield _identity(run)
    yield _keychain(run)
    yield _profiles(_read_profiles(home or Path.home(), run), udids, now or datetime.now(UTC))


def _toolchain(run: Callable[[list[str]], Answer]) -> DoctorCheck:
    version = run(["xcodebuild", "-version"])
    selected = run(["xcode-select", "-p"]).output.strip()
    if version.exit_code != 0:
        return failed(
            HOST,
            "toolchain",
            _first_line(version.output),
            "no_xcode",
            "Install Xcode, open it once, run `sudo xcode-select -s /Applications/Xcode.app`",
        )
    return ok(HOST, "toolchain", f"{_first_line(version.output)} at {selected}")


def _identity(run: Callable[[list[str]], Answer]) -> DoctorCheck:
    answer = run(["security", "find-identity", "-v", "-p", "codesigning"])
    found = _IDENTITIES.search(answer.output)
    count = int(found[1]) if found else 0
    if count == 0:
        return failed(
            HOST,
            "signing",
            "no valid signing identity",
            "no_identity",
            "Add an Apple Development certificate to the keychain, or an App Store Connect key",
        )
    return ok(HOST, "signing", f"{count} valid identities")


def _keychain(run: Callable[[list[str]], Answer]) -> DoctorCheck:
    answer = run(["security", "show-keychain-info"])
    if answer.exit_code != 0:
        # What ssh and launchd sessions get: codesign would fail with errSecInternalComponent.
        return failed(
            HOST,
            "keychain",
            _first_line(answer.output),
            "keychain_locked",
            "Run `security unlock-keychain`, or run fleet in a logged-in session",
        )
    return ok(HOST, "keychain", "unlocked")


@dataclass(frozen=True, slots=True)
class Profile:
    """A provisioning profile."""

    name: str
    expires: datetime
    udids: frozenset[str] | None  # None: every device of the team


def _read_profiles(home: Path, run: Callable[[list[str]], Answer]) -> Iterator[Profile]:
    for folder in PROFILE_FOLDERS:
        for path in sorted((home / folder).glob("*.mobileprovision")):
            answer = run(["security", "cms", "-D", "-i", str(path)])
            profile = _profile(answer.output) if answer.exit_code == 0 else None
            if profile is not None:
                yield profile


def _profile(text: str) -> Profile | None:
    try:
        values = plistlib.loads(text.encode())
        expires = values["ExpirationDate"].replace(tzinfo=UTC)
        name = str(values.get("Name", ""))
    except (plistlib.InvalidFileException, ValueError, KeyError, AttributeError, TypeError):
        return None
    udids = values.get("ProvisionedDevices")
    return Profile(name, expires, frozenset(udids) if isinstance(udids, list) else None)


def _profiles(profiles: Iterator[Profile], udids: Collection[str], now: datetime) -> DoctorCheck:
    valid = [profile for profile in profiles if profile.expires > now]
    if not valid:
        # Automatic signing makes one while it builds, given a key.
        return warning(HOST, "profiles", "no valid profile yet", "no_profile")
    covered = frozenset[str]().union(*(profile.udids or udids for profile in valid))
    missing = sorted(set(udids) - covered)
    if missing:
        return warning(
            HOST,
            "profiles",
            f"no profile lists {', '.join(missing)}",
            "device_not_provisioned",
            "Register the devices, or build with -allowProvisioningDeviceRegistration",
        )
    days = min((profile.expires - now).days for profile in valid)
    text = f"{len(valid)} valid, the first ends in {days} days"
    if days < SOON_DAYS:
        return warning(HOST, "profiles", text, "profile_ends", "Let Xcode renew it")
    return ok(HOST, "profiles", text)


def _first_line(text: str) -> str:
    return next(iter(text.strip().splitlines()), "no answer")
