"""Whether phones will take a signed app, before any is touched: pure, on any host.

What it cannot tell: whether Apple revoked the certificate, whether the seals hold (`codesign
--verify` on a Mac), whether the phone trusts a personal team. Rules are of Apple's code signing
documentation (H) where nothing else is said; no phone was ever asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from orchestrator.domain.iphone import os_version
from orchestrator.harness.signed.macho import IOS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from orchestrator.domain.phone import Phone
    from orchestrator.harness.signed.layout import SignedApp
    from orchestrator.harness.signed.profile import Profile

MEMORY_LIMIT: Final = "com.apple.developer.kernel.increased-memory-limit"
_REBUILD: Final = "Build and sign it again (`fleet build` does for the harness)"
_IPHONE_FAMILY: Final = 1


class Refused(StrEnum):
    """Why an app does not do. The names are relied on from outside (`fleet build --json`)."""

    NOT_FOR_IPHONES = "not_for_iphones"
    BUNDLE_ID = "bundle_id"
    NOT_SIGNED = "not_signed"
    ENCRYPTED = "encrypted"
    NO_PROFILE = "no_profile"
    PROFILE_EXPIRES = "profile_expires"
    TEAM = "team"
    APP_ID = "app_id"
    ENTITLEMENT_MISSING = "entitlement_missing"
    ENTITLEMENT_NOT_ALLOWED = "entitlement_not_allowed"
    DEVICE_NOT_IN_PROFILE = "device_not_in_profile"
    OS_TOO_OLD = "os_too_old"
    DEVICE_NOT_SUPPORTED = "device_not_supported"


@dataclass(frozen=True, slots=True)
class Demands:
    """What a run wants of the app."""

    now: datetime  # with its time zone
    soak_s: float
    bundle_id: str | None = None  # None: whatever it is
    team_id: str | None = None
    increased_memory_limit: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason."""

    reason: Refused
    facts: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.facts}. {self.remedy}"


def app_refusals(app: SignedApp, demands: Demands) -> Iterator[Refusal]:
    """Yield why no iPhone would run an app as it is wanted, the root first."""
    yield from _identity(app, demands)
    yield from _program(app)
    if app.executable is None:
        return
    if app.profile is None:
        problem = f": {app.profile_problem}" if app.profile_problem else ""
        yield Refusal(
            Refused.NO_PROFILE,
            f"it has no usable embedded.mobileprovision{problem}",
            "Sign it for development, or ad hoc: phones of a lab take nothing else",
        )
        return
    yield from _dates(app.profile, demands)
    yield from _team(app, app.profile, demands)
    yield from _entitlements(app, app.profile, demands)


def phone_refusals(app: SignedApp, phone: Phone) -> Iterator[Refusal]:
    """Yield why one phone would not run an app that others may run."""
    profile = app.profile
    known = None if profile is None else profile.udids
    # Plists hold UDIDs as Apple prints them; usbmux lists new ones without their dash on old hosts.
    if known is not None and _plain(phone.udid) not in {_plain(udid) for udid in known}:
        yield Refusal(
            Refused.DEVICE_NOT_IN_PROFILE,
            f"the profile does not list {phone.udid}",
            "Register it at developer.apple.com/account/resources/devices and sign again",
        )
    yield from supported(app, phone)


def supported(app: SignedApp, phone: Phone) -> Iterator[Refusal]:
    """Yield what Info.plist has against a phone; virtual phones heed it too."""
    oldest = str(app.info.get("MinimumOSVersion", ""))
    if os_version(phone.os) < os_version(oldest):
        yield Refusal(
            Refused.OS_TOO_OLD,
            f"it needs iOS {oldest}, and the phone has {phone.os}",
            "Update the phone, or lower the app's deployment target",
        )
    models = app.info.get("UISupportedDevices")  # of apps thinned for some models (M)
    if isinstance(models, list) and phone.product_type not in models:
        yield Refusal(
            Refused.DEVICE_NOT_SUPPORTED,
            f"it was made for {', '.join(map(str, models[:5]))}, not for {phone.product_type}",
            "Export it for all devices",
        )


def _identity(app: SignedApp, demands: Demands) -> Iterator[Refusal]:
    platforms, families = app.info.get("CFBundleSupportedPlatforms"), app.info.get("UIDeviceFamily")
    if isinstance(platforms, list) and "iPhoneOS" not in platforms:
        facts = f"it was built for {', '.join(map(str, platforms))}"
        yield Refusal(Refused.NOT_FOR_IPHONES, facts, "Build for generic/platform=iOS")
    if isinstance(families, list) and _IPHONE_FAMILY not in families:
        facts = f"its UIDeviceFamily is {families}"
        yield Refusal(Refused.NOT_FOR_IPHONES, facts, "Set TARGETED_DEVICE_FAMILY to 1")
    if demands.bundle_id is not None and app.bundle_id != demands.bundle_id:
        yield Refusal(
            Refused.BUNDLE_ID,
            f"its bundle id is {app.bundle_id!r}, not {demands.bundle_id!r}",
            "Correct --bundle-id or harness.bundle_id",
        )


def _program(app: SignedApp) -> Iterator[Refusal]:
    program = app.executable
    if program is None:
        facts = "its executable is no Mach-O program: it is for virtual phones"
        yield Refusal(Refused.NOT_FOR_IPHONES, facts, "Give an app that Xcode built")
        return
    if program.platform not in {IOS, None}:
        facts = f"its executable is for platform {program.platform}, not for iOS ({IOS})"
        yield Refusal(Refused.NOT_FOR_IPHONES, facts, "Build for generic/platform=iOS")
    if program.is_encrypted:
        facts = "it is encrypted as the App Store delivers it"
        yield Refusal(Refused.ENCRYPTED, facts, "Export it for development from its archive")
    if not program.is_signed:
        yield Refusal(Refused.NOT_SIGNED, "it is not signed with a certificate", _REBUILD)


def _dates(profile: Profile, demands: Demands) -> Iterator[Refusal]:
    if profile.expires > demands.now + timedelta(seconds=demands.soak_s):
        return
    when = f"{profile.expires:%Y-%m-%d %H:%M} UTC"
    ended = profile.expires <= demands.now
    personal = ", as profiles of a personal team do after 7 days" if profile.is_personal else ""
    facts = f"its profile ended {when}" if ended else f"its profile ends {when}, before the soak"
    yield Refusal(Refused.PROFILE_EXPIRES, facts + personal, _REBUILD)


def _team(app: SignedApp, profile: Profile, demands: Demands) -> Iterator[Refusal]:
    teams = ", ".join(profile.teams) or "none"
    wanted = demands.team_id
    if wanted is not None and profile.teams and wanted not in profile.teams:
        facts = f"its profile is of team {teams}, not of {wanted}"
        yield Refusal(Refused.TEAM, facts, "Correct harness.team_id, or sign it with that team")
    signer = app.executable.team if app.executable else None
    if signer is not None and profile.teams and signer not in profile.teams:
        facts = f"team {signer} signed it, and its profile is of team {teams}"
        yield Refusal(Refused.TEAM, facts, _REBUILD)
    allowed = str(profile.entitlements.get("application-identifier", "*"))
    own = app.bundle_id
    if not fnmatchcase(own, allowed.partition(".")[2] or "*"):
        facts = f"its profile is for {allowed}, and its bundle id is {own}"
        yield Refusal(Refused.APP_ID, facts, _REBUILD)


def _entitlements(app: SignedApp, profile: Profile, demands: Demands) -> Iterator[Refusal]:
    signed: Mapping[str, Any] = (app.executable.entitlements if app.executable else None) or {}
    if demands.increased_memory_limit and signed.get(MEMORY_LIMIT) is not True:
        remedy = "Set harness.increased_memory_limit to false, or sign it with the entitlement"
        if profile.is_personal:
            remedy = "A personal team cannot sign it: use a paid one, or ask for the plain limit"
        yield Refusal(Refused.ENTITLEMENT_MISSING, f"it is signed without {MEMORY_LIMIT}", remedy)
    denied = sorted(_denied(signed, profile.entitlements))
    if denied:
        yield Refusal(
            Refused.ENTITLEMENT_NOT_ALLOWED,
            f"it is signed with {', '.join(denied)}, which its profile does not allow",
            "Add the capability to the App ID, then sign again with a new profile",
        )


def _denied(signed: Mapping[str, Any], allowed: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the phone would refuse to install with: flags that the profile does not raise."""
    for key, value in signed.items():
        if value is True and allowed.get(key) is not True:
            yield key


def _plain(udid: str) -> str:
    return udid.replace("-", "").lower()
