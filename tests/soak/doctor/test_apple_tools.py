"""The doctor's questions to Apple's tools, asked of executables that answer as is documented."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from orchestrator.soak.doctor.check import State
from orchestrator.soak.doctor.xcode import Signing, xcode_checks
from tests.harness.xcode.stand_ins import Mac
from tests.soak.doctor.test_host_checks import DEVICECTL_FAILED, listed

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.soak.doctor.check import DoctorCheck

UDID = "00008130-0000000000000001"
DEVELOPER = "/Applications/Xcode.app/Contents/Developer\n"
IDENTITIES = '  1) ABC "Apple Development: A (TEAM)"\n     1 valid identities found\n'
LOCKED = "security: SecKeychainCopySettings <NULL>: User interaction is not allowed.\n"  # M


@pytest.fixture
def mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mac:
    mac = Mac.install(tmp_path, monkeypatch)
    mac.answer("xcode-select", DEVELOPER)
    keychain(mac, "", 0)
    devicectl(mac, listed(UDID), 0)
    return mac


def keychain(mac: Mac, said: str, exit_code: int, identities: str = IDENTITIES) -> None:
    """Have `security` list identities, and say something of the keychain."""
    mac.script(
        "security",
        f'if [ "$1" = find-identity ]; then printf %s {shlex.quote(identities)}; exit 0; fi\n'
        f"printf %s {shlex.quote(said)} >&2\nexit {exit_code}\n",
    )


def devicectl(mac: Mac, answer: str, exit_code: int) -> None:
    """Have `xcrun devicectl` write its answer into the file that it is given."""
    mac.script(
        "xcrun",
        f'if [ "$1 $2" != "devicectl -j" ]; then exit 64; fi\n'
        f'printf %s {shlex.quote(answer)} > "$3"\nexit {exit_code}\n',
    )


def checks(home: Path) -> dict[str, DoctorCheck]:
    signing = Signing(team_id="TEAM")
    return {one.name: one for one in xcode_checks([UDID], signing, is_mac=True, home=home)}


def test_tools_that_answer_well_are_asked_with_the_documented_words(
    mac: Mac, tmp_path: Path
) -> None:
    found = checks(tmp_path)
    asked = ("toolchain", "signing", "keychain", "devicectl")
    assert {name: found[name].state for name in asked} == dict.fromkeys(asked, State.OK)
    *first, listing = mac.calls()
    assert first == [
        ["xcodebuild", "-version"],
        ["xcode-select", "-p"],
        ["security", "find-identity", "-v", "-p", "codesigning"],
        ["security", "show-keychain-info"],
    ]
    file = listing.pop(3)
    assert listing == ["xcrun", "devicectl", "-j", "-t", "20", "list", "devices"]
    assert file.endswith("devices.json")


def test_a_keychain_that_is_locked_under_ssh_is_told(mac: Mac, tmp_path: Path) -> None:
    keychain(mac, LOCKED, 36)
    found = checks(tmp_path)["keychain"]
    assert (found.state, found.reason) == (State.FAILED, "keychain_locked")
    assert "User interaction is not allowed" in found.facts


def test_without_an_identity_signing_fails(mac: Mac, tmp_path: Path) -> None:
    keychain(mac, "", 0, identities="     0 valid identities found\n")
    found = checks(tmp_path)["signing"]
    assert (found.state, found.reason) == (State.FAILED, "no_identity")


def test_a_devicectl_that_fails_is_told_and_decides_nothing(mac: Mac, tmp_path: Path) -> None:
    devicectl(mac, DEVICECTL_FAILED, 1)
    found = checks(tmp_path)["devicectl"]
    assert found.state is State.WARNING
    assert "CoreDeviceError 1011: Unable to locate a device." in found.facts


def test_a_tool_that_is_not_there_is_no_xcode(mac: Mac, tmp_path: Path) -> None:
    mac.without("xcodebuild")
    found = checks(tmp_path)
    assert (found["toolchain"].state, found["toolchain"].reason) == (State.FAILED, "no_xcode")
    assert "devicectl" not in found
