"""The host's checks; those of a Mac against commands that answer from a table."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.domain.outcome import ExitCode
from orchestrator.harness.signed.layout import read_app
from orchestrator.harness.signed.preflight import Demands
from orchestrator.harness.tool import ToolRun
from orchestrator.soak.doctor.app import app_checks
from orchestrator.soak.doctor.check import DoctorCheck, State, diagnosis_of, exit_code_of
from orchestrator.soak.doctor.host import GIB, disk_check, host_checks, library_check, python_check
from orchestrator.soak.doctor.xcode import PROFILE_FOLDERS, Signing, run_command, xcode_checks
from tests.harness.signed.making import NOW as SIGNED_AT
from tests.harness.signed.making import AppParts, naive
from tests.harness.signed.making import profile as made_profile
from tests.harness.signed.test_preflight import PHONE
from tests.harness.xcode.test_failures import COMMAND_LINE_TOOLS, LICENCE

NOW = datetime(2026, 3, 1, tzinfo=UTC)
GOOD = {
    "xcodebuild": ToolRun(0, "Xcode 16.4\nBuild version 16F6\n"),
    "xcode-select": ToolRun(0, "/Applications/Xcode.app/Contents/Developer\n"),
    "find-identity": ToolRun(0, '  1) AB "Apple Development"\n     1 valid identities found\n'),
    "show-keychain-info": ToolRun(0, ""),
}


def profile(days: int, udids: list[str] | None = None) -> bytes:
    return made_profile(
        ExpirationDate=naive(NOW + timedelta(days=days)),
        ProvisionedDevices=udids,
        ProvisionsAllDevices=None if udids else True,
    )


def listed(*udids: str) -> str:
    """What devicectl writes into its file."""
    devices = [
        {
            "hardwareProperties": {"udid": udid},
            "deviceProperties": {"developerModeStatus": "enabled", "ddiServicesAvailable": True},
            "connectionProperties": {"tunnelState": "connected"},
        }
        for udid in udids
    ]
    answer = {"info": {"outcome": "success", "jsonVersion": 2}, "result": {"devices": devices}}
    return json.dumps(answer)


@dataclass
class Bench:
    """A Mac whose tools answer from a table."""

    home: Path
    signing: Signing = field(default_factory=lambda: Signing(has_key=False, team_id="ABCDE12345"))
    devicectl: tuple[int, str] = (0, listed("UDID-A"))
    calls: list[list[str]] = field(default_factory=list)

    def checks(self, *profiles: bytes, **answers: ToolRun) -> dict[str, DoctorCheck]:
        """Return the checks by name; `answers` replace those of a good Mac."""
        folder = self.home / PROFILE_FOLDERS[0]
        folder.mkdir(parents=True)
        for number, data in enumerate(profiles):
            (folder / f"{number}.mobileprovision").write_bytes(data)
        table = GOOD | {name.replace("_", "-"): answer for name, answer in answers.items()}

        def run(words: list[str]) -> ToolRun:
            self.calls.append(words)
            if words[1] == "devicectl":
                code, text = self.devicectl
                Path(words[3]).write_text(text)
                return ToolRun(code, "prose that is no interface\n")
            return table[words[0]] if words[0] in table else table[words[1]]

        found = xcode_checks(
            ["UDID-A"], self.signing, is_mac=True, run=run, home=self.home, now=NOW
        )
        return {check.name: check for check in found}


def mac(home: Path, *profiles: bytes, **answers: ToolRun) -> dict[str, DoctorCheck]:
    """Return the checks of a Mac with a team and without a key."""
    return Bench(home).checks(*profiles, **answers)


def test_a_good_mac_is_all_right(tmp_path: Path) -> None:
    found = mac(tmp_path, profile(300, ["UDID-A"]))
    assert {check.state for check in found.values()} == {State.OK}
    assert found["toolchain"].facts.startswith("Xcode 16.4 at /Applications")


@pytest.mark.parametrize(
    ("answers", "name", "reason"),
    [
        ({"xcodebuild": ToolRun(127, "xcodebuild: not there")}, "toolchain", "no_xcode"),
        ({"xcodebuild": ToolRun(69, LICENCE)}, "toolchain", "licence_not_accepted"),
        ({"xcodebuild": ToolRun(1, COMMAND_LINE_TOOLS)}, "toolchain", "wrong_xcode_select"),
        ({"find_identity": ToolRun(0, "0 valid identities found")}, "signing", "no_identity"),
        (
            {"show_keychain_info": ToolRun(36, "User interaction is not allowed.")},
            "keychain",
            "keychain_locked",
        ),
    ],
)
def test_what_a_build_lacks_is_named_with_its_remedy(
    answers: dict[str, ToolRun], name: str, reason: str, tmp_path: Path
) -> None:
    check = mac(tmp_path, **answers)[name]
    assert (check.state, check.reason) == (State.FAILED, reason)
    assert check.remedy


@pytest.mark.parametrize(
    ("profiles", "reason"),
    [
        ((), "no_profile"),
        ((profile(-1, ["UDID-A"]),), "no_profile"),
        ((b"not a profile",), "no_profile"),
        ((profile(300, ["UDID-B"]),), "device_not_provisioned"),
        ((profile(3, ["UDID-A"]),), "profile_ends"),
        ((profile(300),), None),
    ],
)
def test_profiles_are_checked_for_dates_and_devices(
    profiles: tuple[bytes, ...], reason: str | None, tmp_path: Path
) -> None:
    assert mac(tmp_path, *profiles)["profiles"].reason == reason


def test_the_command_lines_are_the_documented_ones(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.checks(profile(300, ["UDID-A"]))
    assert bench.calls[:4] == [
        ["xcodebuild", "-version"],
        ["xcode-select", "-p"],
        ["security", "find-identity", "-v", "-p", "codesigning"],
        ["security", "show-keychain-info"],
    ]
    (listing,) = bench.calls[4:]
    file = listing[3]
    assert listing == ["xcrun", "devicectl", "-j", file, "-t", "20", "list", "devices"]


def test_a_key_makes_up_for_an_identity_and_a_missing_team_is_told(tmp_path: Path) -> None:
    nothing = ToolRun(0, "0 valid identities found")
    keyed = Bench(tmp_path / "a", signing=Signing(has_key=True, team_id="T")).checks(
        find_identity=nothing
    )
    assert (keyed["signing"].state, keyed["signing"].reason) == (State.WARNING, "no_identity")
    teamless = Bench(tmp_path / "b", signing=Signing()).checks()
    assert (teamless["signing"].state, teamless["signing"].reason) == (State.WARNING, "no_team")


DEVICECTL_FAILED = json.dumps(
    {
        "info": {"outcome": "failed"},
        "error": {
            "code": 1011,
            "domain": "com.apple.dt.CoreDeviceError",
            "userInfo": {"NSLocalizedDescription": {"string": "Unable to locate a device."}},
        },
    }
)


@pytest.mark.parametrize(
    ("answer", "reason", "words"),
    [
        ((0, listed("UDID-B")), "not_listed", "UDID-A"),
        (
            (1, DEVICECTL_FAILED),
            "devicectl_failed",
            "CoreDeviceError 1011: Unable to locate a device.",
        ),
        ((0, DEVICECTL_FAILED), "devicectl_failed", "Unable to locate"),
        ((0, "prose"), "devicectl_failed", "cannot be read"),
        ((0, '{"info": {"outcome": "success"}, "result": []}'), "not_listed", "UDID-A"),
        ((1, ""), "devicectl_failed", "prose that is no interface"),
    ],
)
def test_what_devicectl_says_is_a_second_witness(
    answer: tuple[int, str], reason: str, words: str, tmp_path: Path
) -> None:
    check = Bench(tmp_path, devicectl=answer).checks()["devicectl"]
    assert (check.state, check.reason) == (State.WARNING, reason)
    assert words in check.facts


def test_iphones_on_another_system_have_no_toolchain() -> None:
    (check,) = xcode_checks(["UDID-A"], Signing(), is_mac=False)
    assert (check.state, check.reason) == (State.FAILED, "no_xcode")


def test_a_command_that_is_not_there_is_an_answer() -> None:
    assert run_command(["no-such-command-of-xcode"]).exit_code == 127


def test_an_old_python_is_refused() -> None:
    assert python_check((3, 10, 9)).reason == "python_too_old"
    assert python_check((3, 11, 0)).state is State.OK


def test_another_minor_of_the_phone_library_is_refused() -> None:
    assert library_check(lambda _: "11.46.0").reason == "library_version"
    assert library_check(lambda _: "11.45.3").state is State.OK


@pytest.mark.parametrize(
    ("free_bytes", "state"),
    [(GIB - 1, State.FAILED), (5 * GIB, State.WARNING), (50 * GIB, State.OK)],
)
def test_room_for_runs_is_checked(free_bytes: int, state: State) -> None:
    assert disk_check(free_bytes).state is state


def test_this_host_is_fit_for_its_own_tests(tmp_path: Path) -> None:
    found = list(host_checks(tmp_path / "not" / "yet"))
    assert all(check.state is not State.FAILED for check in found)


def test_an_app_that_was_given_is_checked_in_place_of_xcode(tmp_path: Path) -> None:
    demands = Demands(now=SIGNED_AT, soak_s=3600.0)
    good = read_app(AppParts().ipa(tmp_path / "good.ipa"))
    (check,) = app_checks(good, demands, [PHONE])
    assert (check.state, check.name) == (State.OK, "app")
    bad = read_app(AppParts(profile=made_profile(ProvisionedDevices=[])).ipa(tmp_path / "bad.ipa"))
    found = [(check.subject, check.state) for check in app_checks(bad, demands, [PHONE])]
    assert found == [("host", State.OK), ("bench-01", State.FAILED)]
    plain = read_app(AppParts(profile=None).ipa(tmp_path / "plain.ipa"))
    diagnosis = diagnosis_of(list(app_checks(plain, demands, [])), phones_wanted=False)
    assert exit_code_of(diagnosis) is ExitCode.BUILD
