"""What the tools are known to say, and the one cause that is made of it.

The texts are shortened from public logs; the marks are those of `commands.py`: H several
independent logs or Apple's own words, M one log or a maintained tool's source, L from memory.
"""

from __future__ import annotations

import pytest

from orchestrator.harness.xcode.failures import BuildCause, classify

LICENCE = (
    "You have not agreed to the Xcode license agreements. Please run 'sudo xcodebuild -license' "
    "from within a Terminal window to review and agree to the Xcode and Apple SDKs license."
)  # H
OLD_LICENCE = (
    "Agreeing to the Xcode/iOS license requires admin privileges, please run "
    "“sudo xcodebuild -license” and then retry this command."
)  # H
COMMAND_LINE_TOOLS = (
    "xcode-select: error: tool 'xcodebuild' requires Xcode, but active developer directory "
    "'/Library/Developer/CommandLineTools' is a command line tools instance"
)  # H
NO_DEVICECTL = (
    'xcrun: error: unable to find utility "devicectl", not a developer tool or in PATH'  # M
)
PLATFORM = """\
xcodebuild: error: Unable to find a destination matching the provided destination specifier:
\t\t{ generic:1, platform:iOS }

\tIneligible destinations for the "HarnessApp" scheme:
\t\t{ platform:iOS, id:dvtdevice-DVTiPhonePlaceholder-iphoneos:placeholder, name:Any iOS Device, \
error:iOS 26.0 is not installed. Please download and install the platform from Xcode > Settings > \
Components. }
"""  # H
KEYCHAIN = """\
/usr/bin/codesign --force --sign B271009883B4846E9C6E2ED7C17F0E9B3AA234BB HarnessApp.app
HarnessApp.app: errSecInternalComponent
Command CodeSign failed with a nonzero exit code
** BUILD FAILED **
"""  # H
NO_INTERACTION = "HarnessApp.app: User interaction is not allowed.\n** BUILD FAILED **"  # H
PERSONAL = """\
error: Cannot create a iOS App Development provisioning profile for "dev.example.harness". \
Personal development teams, including "A Person", do not support the Increased Memory Limit \
capability.
error: No profiles for 'dev.example.harness' were found: Xcode couldn't find any iOS App \
Development provisioning profiles matching 'dev.example.harness'.
"""  # H
DEVICE = """\
error: Provisioning profile "iOS Team Provisioning Profile: dev.example.harness" doesn't include \
the currently selected device "bench-01" (identifier 00008140-000A1B2C3D4E5F60). (in target \
'HarnessApp' from project 'HarnessApp')
"""  # H
NO_DEVICES = """\
error: Communication with Apple failed: Your team has no devices from which to generate a \
provisioning profile. Connect a device to use or manually add device IDs.
error: No profiles for 'dev.example.harness' were found
"""  # H
NO_ACCOUNT = 'error: No Account for Team "ABCDE12345". Add a new account in Accounts settings.'  # H
NO_ACCOUNTS = "error: No Accounts: Add a new account in Accounts settings."  # H
CLOUD = """\
error: Cloud signing permission error
error: No profiles for 'dev.example.harness' were found
"""  # M
IDENTITY = (
    'error: No signing certificate "iOS Development" found: No "iOS Development" signing '
    'certificate matching team ID "ABCDE12345" with a private key was found.'
)  # M
NO_TEAM = 'error: Signing for "HarnessApp" requires a development team.'  # M
PROFILE = "error: No profiles for 'dev.example.harness' were found: Xcode couldn't find any."  # H
ENTITLEMENT = (
    'error: Provisioning profile "lab" doesn\u2019t include the '
    "com.apple.developer.kernel.increased-memory-limit entitlement."
)  # M
PROJECT = "xcodebuild: error: '/lab/X.xcodeproj' does not exist."  # M
SCHEME = 'xcodebuild: error: The project named "X" does not contain a scheme named "Y".'  # M
COMPILE = "/lab/Sources/Budget.swift:12:5: error: cannot find 'budget' in scope"  # H

CASES = [
    (LICENCE, 69, BuildCause.LICENCE),
    (OLD_LICENCE, 69, BuildCause.LICENCE),
    (COMMAND_LINE_TOOLS, 1, BuildCause.WRONG_XCODE_SELECT),
    (NO_DEVICECTL, 72, BuildCause.WRONG_XCODE_SELECT),
    (PLATFORM, 70, BuildCause.PLATFORM_MISSING),
    (KEYCHAIN, 65, BuildCause.KEYCHAIN_LOCKED),
    (NO_INTERACTION, 65, BuildCause.KEYCHAIN_LOCKED),
    (PERSONAL, 65, BuildCause.PERSONAL_TEAM),
    (DEVICE, 65, BuildCause.DEVICE_NOT_REGISTERED),
    (NO_DEVICES, 65, BuildCause.DEVICE_NOT_REGISTERED),
    (NO_ACCOUNT, 65, BuildCause.NO_ACCOUNT),
    (NO_ACCOUNTS, 65, BuildCause.NO_ACCOUNT),
    (CLOUD, 65, BuildCause.KEY_NOT_ALLOWED),
    (IDENTITY, 65, BuildCause.NO_IDENTITY),
    (NO_TEAM, 65, BuildCause.NO_IDENTITY),
    (PROFILE, 65, BuildCause.PROFILE),
    (ENTITLEMENT, 65, BuildCause.PROFILE),
    (PROJECT, 66, BuildCause.PROJECT_MISSING),
    (SCHEME, 65, BuildCause.PROJECT_MISSING),
    (COMPILE, 65, BuildCause.COMPILE),
]


@pytest.mark.parametrize(("text", "exit_code", "cause"), CASES)
def test_each_text_gives_one_cause_with_its_line_and_remedy(
    text: str, exit_code: int, cause: BuildCause
) -> None:
    noise = "note: Building targets in dependency order\n"
    found = classify(f"{noise}{text}\n** BUILD FAILED **\n", exit_code)
    assert found.cause is cause
    assert found.facts in text
    assert found.remedy


def test_a_licence_is_known_by_its_exit_code_alone() -> None:
    assert classify("", 69).cause is BuildCause.LICENCE


def test_words_that_nobody_knows_are_shown_as_they_are() -> None:
    found = classify("note: fine\nerror: a new thing of Xcode 30\nmore", 65)
    assert found.cause is BuildCause.UNKNOWN
    assert found.facts == "exit code 65: error: a new thing of Xcode 30"


def test_an_empty_answer_is_unknown() -> None:
    assert classify("", 65).facts == "exit code 65: no error line"


def test_a_long_line_is_cut() -> None:
    assert len(classify("error: No Accounts " + "x" * 5000, 65).facts) == 300
