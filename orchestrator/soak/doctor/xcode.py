"""What a build for iPhones needs of a Mac: Xcode, a signing identity, profiles, an open keychain.

From Apple's documentation of the tools; not run on a Mac.
"""

from __future__ import annotations

import contextlib
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.domain.deadline import Deadline
from orchestrator.harness.signed.profile import Profile, read_profile
from orchestrator.harness.tool import NOT_THERE, ToolRun, run_tool
from orchestrator.harness.xcode import commands
from orchestrator.harness.xcode.core_device import CoreDeviceError, list_core_devices
from orchestrator.harness.xcode.failures import BuildCause, classify
from orchestrator.soak.doctor.check import HOST, State, failed, ok, warning

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


def run_command(words: list[str]) -> ToolRun:
    """Run a command with a limit; one that is not there answers with 127."""
    return run_tool(words, deadline=Deadline.after(COMMAND_LIMIT_S))


@dataclass(frozen=True, slots=True)
class Signing:
    """What the configuration signs with."""

    has_key: bool = False  # an App Store Connect key
    team_id: str | None = None


def xcode_checks(
    udids: Collection[str],
    signing: Signing,
    *,
    is_mac: bool = sys.platform == "darwin",
    run: Callable[[list[str]], ToolRun] = run_command,
    home: Path | None = None,
    now: datetime | None = None,
) -> Iterator[DoctorCheck]:
    """Yield the checks of a build for these phones.

    Args:
        udids: Real phones that are attached.
        signing: What the configuration has for automatic signing.
        is_mac: Whether Xcode can be here at all.
        run: Runs a command line.
        home: Where profiles lie.
        now: For the dates of profiles.
    """
    if not is_mac:
        yield failed(
            HOST,
            "toolchain",
            "iPhones are attached, and Xcode runs on a Mac alone",
            "no_xcode",
            "Give a signed app: `fleet doctor --ipa` here, then `fleet soak --ipa`; or use a Mac",
        )
        return
    toolchain = _toolchain(run)
    yield toolchain
    yield _identity(run, signing)
    yield _keychain(run)
    yield _profiles(_read_profiles(home or Path.home()), udids, now or datetime.now(UTC))
    if toolchain.state is State.OK:
        yield _core_device(udids, run)


def _toolchain(run: Callable[[list[str]], ToolRun]) -> DoctorCheck:
    version = run(commands.xcode_version())
    selected = run(commands.selected_xcode()).output.strip()
    if version.exit_code == 0:
        return ok(HOST, "toolchain", f"{version.first_line} at {selected}")
    if version.exit_code == NOT_THERE:
        remedy = "Install Xcode, open it once, run `sudo xcode-select -s /Applications/Xcode.app`"
        return failed(HOST, "toolchain", version.first_line, BuildCause.NO_XCODE, remedy)
    failure = classify(version.output, version.exit_code)
    return failed(HOST, "toolchain", failure.facts, failure.cause, failure.remedy)


def _identity(run: Callable[[list[str]], ToolRun], signing: Signing) -> DoctorCheck:
    answer = run(commands.signing_identities())
    found = _IDENTITIES.search(answer.output)
    count = int(found[1]) if found else 0
    team = f", team {signing.team_id}" if signing.team_id else ", no team is configured"
    if count == 0 and signing.has_key:
        facts = f"no identity yet; the App Store Connect key can make one{team}"
        return warning(HOST, "signing", facts, "no_identity", "Run `fleet build` once")
    if count == 0:
        return failed(
            HOST,
            "signing",
            "no valid signing identity, and no App Store Connect key",
            "no_identity",
            "Add an Apple Development certificate to the keychain, or an App Store Connect key",
        )
    if signing.team_id is None:
        facts = f"{count} valid identities{team}"
        return warning(HOST, "signing", facts, "no_team", "Set FLEET_TEAM_ID or harness.team_id")
    return ok(HOST, "signing", f"{count} valid identities{team}")


def _keychain(run: Callable[[list[str]], ToolRun]) -> DoctorCheck:
    answer = run(commands.keychain_info())
    if answer.exit_code != 0:
        # What ssh and launchd sessions get: codesign would fail with errSecInternalComponent.
        return failed(
            HOST,
            "keychain",
            answer.first_line,
            BuildCause.KEYCHAIN_LOCKED,
            "Run `security unlock-keychain`, or run fleet in a logged-in session",
        )
    return ok(HOST, "keychain", "unlocked")


def _core_device(udids: Collection[str], run: Callable[[list[str]], ToolRun]) -> DoctorCheck:
    """Look at the phones with Apple's own tool: a second witness; nothing rests on it."""
    try:
        seen = {phone.udid: phone for phone in list_core_devices(run)}
    except CoreDeviceError as error:
        return warning(HOST, "devicectl", str(error), "devicectl_failed", "Run it by hand")
    missing = sorted(set(udids) - set(seen))
    if missing:
        facts = f"devicectl does not list {', '.join(missing)}"
        return warning(HOST, "devicectl", facts, "not_listed", "Plug in again; tap Trust")
    states = ", ".join(f"{udid[-8:]} {seen[udid].tunnel_state}" for udid in sorted(udids))
    return ok(HOST, "devicectl", f"lists all phones: {states}")


def _read_profiles(home: Path) -> Iterator[Profile]:
    for folder in PROFILE_FOLDERS:
        for path in sorted((home / folder).glob("*.mobileprovision")):
            with contextlib.suppress(OSError, ValueError):
                yield read_profile(path.read_bytes())


def _profiles(profiles: Iterator[Profile], udids: Collection[str], now: datetime) -> DoctorCheck:
    valid = [profile for profile in profiles if profile.expires > now]
    if not valid:
        # Automatic signing makes one while it builds, given a key.
        return warning(HOST, "profiles", "no valid profile yet", "no_profile")
    everywhere = frozenset(udids)
    listed = [everywhere if profile.udids is None else profile.udids for profile in valid]
    covered = frozenset[str]().union(*listed)
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
