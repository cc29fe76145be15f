"""From what a tool said to one cause with its remedy: pure.

The texts are those of public logs (`.` stands for either apostrophe); the marks are those of
`commands.py`. A text that matches nothing is `unknown` and shows its error lines: a new Xcode may
word things anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_WIDEST: Final = 300  # characters of a line that is shown
_SHOWN_ERRORS: Final = 3


class BuildCause(StrEnum):
    """Why a build failed. The names are relied on from outside (`fleet build --json`)."""

    NO_XCODE = "no_xcode"
    LICENCE = "licence_not_accepted"
    WRONG_XCODE_SELECT = "wrong_xcode_select"
    PLATFORM_MISSING = "platform_missing"
    KEYCHAIN_LOCKED = "keychain_locked"
    PERSONAL_TEAM = "personal_team"
    DEVICE_NOT_REGISTERED = "device_not_registered"
    NO_ACCOUNT = "no_account"
    KEY_NOT_ALLOWED = "key_not_allowed"
    NO_IDENTITY = "signing_identity"
    PROFILE = "profile"
    PROJECT_MISSING = "project_missing"
    TIMED_OUT = "timed_out"
    COMPILE = "compile"
    BAD_PRODUCT = "bad_product"  # the build ended well, and its app does not do
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Failure:
    """One cause."""

    cause: BuildCause
    facts: str  # one line of the tool's own
    remedy: str


# The first that matches wins: the root stands before what follows from it. A personal team's
# refusal is followed by "No profiles for ... were found", a locked keychain by a failed CodeSign.
_RULES: Final = (
    # H: texts of 2009 to 2026; exit 69.
    (
        r"(have not agreed to the Xcode|Agreeing to the Xcode/iOS) license",
        BuildCause.LICENCE,
        "Run `sudo xcodebuild -license accept`, then `sudo xcodebuild -runFirstLaunch`",
    ),
    # H: the first two; M: the others (exit 72 of xcrun).
    (
        (
            r"xcode-select: error:|is a command line tools instance|invalid active developer path"
            r"|invalid developer directory|xcrun: error: unable to find utility"
            r"|unable to get active developer directory"
        ),
        BuildCause.WRONG_XCODE_SELECT,
        "Run `sudo xcode-select -s /Applications/Xcode.app`, or set DEVELOPER_DIR",
    ),
    # H: public logs of Xcode 16 and 26, exit 70.
    (
        r"iOS [0-9.]+ is not installed|platform .{0,80}is not installed|Found no destinations",
        BuildCause.PLATFORM_MISSING,
        "Run `xcodebuild -downloadPlatform iOS`",
    ),
    # H: Apple DTS, forum thread 712005; -25308 is errSecInteractionNotAllowed.
    (
        r"errSecInternalComponent|User interaction is not allowed|errSecInteractionNotAllowed",
        BuildCause.KEYCHAIN_LOCKED,
        (
            "Unlock the keychain in this session (`security unlock-keychain`) and let codesign use "
            "the key (`security set-key-partition-list`), or run fleet as a LaunchAgent of a "
            "logged-in user: docs/mac-mini.md"
        ),
    ),
    # H.
    (
        r"Personal development teams.{0,200}do not support",
        BuildCause.PERSONAL_TEAM,
        "Use a paid team, or set harness.increased_memory_limit to false",
    ),
    # H: the first two; M: the others.
    (
        (
            r"doesn.t include the currently selected device|team has no devices from which"
            r"|device .{0,200}isn.t registered|maximum number of registered"
        ),
        BuildCause.DEVICE_NOT_REGISTERED,
        (
            "Register the UDID that `fleet devices` lists at "
            "developer.apple.com/account/resources/devices, then build again"
        ),
    ),
    # M: the key's role may not manage certificates.
    (
        (
            r"Cloud signing permission error|ITunesConnectionAuthenticationErrorDomain"
            r"|authentication key .{0,120}(invalid|not)"
        ),
        BuildCause.KEY_NOT_ALLOWED,
        "Give the App Store Connect key the role Admin, or App Manager with access to certificates",
    ),
    # H.
    (
        r"No Accounts|No Account for Team",
        BuildCause.NO_ACCOUNT,
        (
            "Set FLEET_ASC_KEY_PATH, FLEET_ASC_KEY_ID and FLEET_ASC_ISSUER_ID, or log in to "
            "Xcode > Settings > Accounts"
        ),
    ),
    # M.
    (
        (
            r"No signing certificate|requires a development team|no identity found"
            r"|certificate .{0,120}(revoked|expired)|No certificate for team"
        ),
        BuildCause.NO_IDENTITY,
        (
            "Set harness.team_id (FLEET_TEAM_ID), and let the key or account make an Apple "
            "Development certificate, or import one: docs/mac-mini.md"
        ),
    ),
    # H: "No profiles"; M: the others.
    (
        (
            r"No profiles for|requires a provisioning profile"
            r"|Provisioning profile .{0,300}(doesn.t (include|support|match)|expired)"
        ),
        BuildCause.PROFILE,
        (
            "Let automatic signing make one: check harness.bundle_id, harness.team_id and what "
            "the key or account may do"
        ),
    ),
    # M: exit 66.
    (
        r"'[^']*\.xcodeproj' does not exist|is not a project file|does not contain a scheme",
        BuildCause.PROJECT_MISSING,
        "Check harness.project and harness.scheme",
    ),
    # H: Swift and clang.
    (r"^\S+:\d+:\d+: (fatal )?error: ", BuildCause.COMPILE, "Mend the source that is named"),
)
_COMPILED: Final = tuple(
    (re.compile(pattern, re.MULTILINE), cause, remedy) for pattern, cause, remedy in _RULES
)
_ERROR_LINE: Final = re.compile(r"^.*\berror: .*$|^.*\b(?:FAILED|failed)\b.*$", re.MULTILINE)
_LICENCE_EXIT: Final = 69  # H: bazelbuild/continuous-integration 842, expo/xde 20


def classify(output: str, exit_code: int) -> Failure:
    """Return the one cause of a failed tool.

    Args:
        output: Everything it said, messages of its result bundle included; hostile text.
        exit_code: Its own; 65 is any failed build, which says nothing (H).
    """
    for pattern, cause, remedy in _COMPILED:
        found = pattern.search(output)
        if found is not None:
            return Failure(cause, _line_at(output, found.start()), remedy)
    if exit_code == _LICENCE_EXIT:
        facts = f"exit code {exit_code}"
        return Failure(BuildCause.LICENCE, facts, "Run `sudo xcodebuild -license accept`")
    lines = [match[0].strip()[:_WIDEST] for match in _ERROR_LINE.finditer(output)][:_SHOWN_ERRORS]
    facts = f"exit code {exit_code}: " + (" / ".join(lines) or "no error line")
    return Failure(BuildCause.UNKNOWN, facts, "Read the log")


def _line_at(text: str, position: int) -> str:
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return text[start : len(text) if end < 0 else end].strip()[:_WIDEST]
