"""The exact command lines of Apple's tools: pure, so that tests can hold each word of them.

Marks: H is Apple's documentation or several independent reports, M one good report or a
maintained tool's source, L an inference. None of it was run on a Mac by this project.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

CONFIGURATION: Final = "Release"
MEMORY_ENTITLEMENTS: Final = "Config/IncreasedMemory.entitlements"  # below the project's folder
PLAIN_ENTITLEMENTS: Final = "Config/HarnessApp.entitlements"


@dataclass(frozen=True, slots=True)
class AscKey:
    """An App Store Connect key: it stands for an account in Xcode's settings (H, Xcode 13)."""

    path: Path  # of the .p8; xcodebuild wants it absolute (H)
    key_id: str
    issuer_id: str


@dataclass(frozen=True, slots=True)
class XcodeBuild:
    """What xcodebuild is asked for."""

    project: Path
    scheme: str
    bundle_id: str
    team_id: str | None  # None: the project's own
    increased_memory_limit: bool
    derived_data: Path
    result_bundle: Path  # must not be there yet: exit 74 otherwise (M)
    key: AscKey | None  # None: an account that is logged in to Xcode


def xcodebuild(build: XcodeBuild) -> list[str]:
    """Return the build with automatic signing (M/H: the shape of many public scripts).

    Settings on the command line override the project's (H). Without a key and without an account
    `-allowProvisioningUpdates` fails with "No Accounts" (H).
    """
    words = ["xcodebuild", "-project", str(build.project), "-scheme", build.scheme]
    words += ["-configuration", CONFIGURATION, "-destination", "generic/platform=iOS"]
    words += ["-derivedDataPath", str(build.derived_data)]
    words += ["-resultBundlePath", str(build.result_bundle)]
    # The second flag registers the destination's phone; whether a generic destination registers
    # any is not known (L): the preflight finds a phone that the profile does not list.
    words += ["-allowProvisioningUpdates", "-allowProvisioningDeviceRegistration"]
    if build.key is not None:
        words += ["-authenticationKeyPath", str(build.key.path)]
        words += ["-authenticationKeyID", build.key.key_id]
        words += ["-authenticationKeyIssuerID", build.key.issuer_id]
    if build.team_id is not None:
        words.append(f"DEVELOPMENT_TEAM={build.team_id}")
    words += ["CODE_SIGN_STYLE=Automatic", f"PRODUCT_BUNDLE_IDENTIFIER={build.bundle_id}"]
    entitled = build.increased_memory_limit
    words.append(f"HARNESS_ENTITLEMENTS={MEMORY_ENTITLEMENTS if entitled else PLAIN_ENTITLEMENTS}")
    return [*words, "build"]


def products_folder(derived_data: Path) -> Path:
    """Return where the app lies after a build (M)."""
    return derived_data / "Build" / "Products" / f"{CONFIGURATION}-iphoneos"


def xcode_version() -> list[str]:
    """Two lines: `Xcode 16.4`, `Build version 16F6` (H); fails without licence or Xcode."""
    return ["xcodebuild", "-version"]


def selected_xcode() -> list[str]:
    """Prints the active developer directory (H)."""
    return ["xcode-select", "-p"]


def build_results(result_bundle: Path) -> list[str]:
    """JSON with errors and warnings of a build, since Xcode 16 (L: its exact keys)."""
    return ["xcrun", "xcresulttool", "get", "build-results", "--path", str(result_bundle)]


def verify_signature(app: Path) -> list[str]:
    """Checks every seal of the bundle; 0 and silence where they hold (H)."""
    return ["codesign", "--verify", "--deep", "--strict", str(app)]


def signing_identities() -> list[str]:
    """Lists identities; its last line counts the valid ones (H)."""
    return ["security", "find-identity", "-v", "-p", "codesigning"]


def keychain_info() -> list[str]:
    """Fails with errSecInteractionNotAllowed where the default keychain is locked (M)."""
    return ["security", "show-keychain-info"]


def core_device_list(answer: Path, limit_s: float) -> list[str]:
    """List what CoreDevice sees; JSON goes to a file: text on stdout is no interface (H)."""
    return ["xcrun", "devicectl", "-j", str(answer), "-t", f"{limit_s:.0f}", "list", "devices"]
