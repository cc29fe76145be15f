"""The host's checks; those of a Mac against commands that answer from a table."""

from __future__ import annotations

import plistlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from orchestrator.soak.doctor.check import DoctorCheck, State
from orchestrator.soak.doctor.host import GIB, disk_check, host_checks, library_check, python_check
from orchestrator.soak.doctor.xcode import PROFILE_FOLDERS, Answer, run_command, xcode_checks

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 3, 1, tzinfo=UTC)
GOOD = {
    "xcodebuild": Answer(0, "Xcode 16.4\nBuild version 16F6\n"),
    "xcode-select": Answer(0, "/Applications/Xcode.app/Contents/Developer\n"),
    "find-identity": Answer(0, '  1) AB "Apple Development"\n     1 valid identities found\n'),
    "show-keychain-info": Answer(0, ""),
}


def profile(days: int, udids: list[str] | None = None) -> str:
    values: dict[str, object] = {"Name": "p", "ExpirationDate": naive(NOW + timedelta(days=days))}
    if udids is not None:
        values["ProvisionedDevices"] = udids
    return plistlib.dumps(values).decode()


def naive(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None)


def mac(home: Path, *profiles: str, **answers: Answer) -> dict[str, DoctorCheck]:
    """Return the checks of a Mac by name; `answers` replace those of a good one."""
    folder = home / PROFILE_FOLDERS[0]
    folder.mkdir(parents=True)
    for number, text in enumerate(profiles):
        (folder / f"{number}.mobileprovision").write_text(text)
    table = GOOD | {name.replace("_", "-"): answer for name, answer in answers.items()}

    def run(words: list[str]) -> Answer:
        if words[1] == "cms":
            return Answer(0, (folder / words[-1]).read_text())
        return table[words[0]] if words[0] in table else table[words[1]]

    found = xcode_checks(["UDID-A"], is_mac=True, run=run, home=home, now=NOW)
    return {check.name: check for check in found}


def test_a_good_mac_is_all_right(tmp_path: Path) -> None:
    found = mac(tmp_path, profile(300, ["UDID-A"]))
    assert {check.state for check in found.values()} == {State.OK}
    assert found["toolchain"].facts.startswith("Xcode 16.4 at /Applications")


@pytest.mark.parametrize(
    ("answers", "name", "reason"),
    [
        ({"xcodebuild": Answer(1, "requires Xcode")}, "toolchain", "no_xcode"),
        ({"find_identity": Answer(0, "0 valid identities found")}, "signing", "no_identity"),
        (
            {"show_keychain_info": Answer(36, "User interaction is not allowed.")},
            "keychain",
            "keychain_locked",
        ),
    ],
)
def test_what_a_build_lacks_is_named_with_its_remedy(
    answers: dict[str, Answer], name: str, reason: str, tmp_path: Path
) -> None:
    check = mac(tmp_path, **answers)[name]
    assert (check.state, check.reason) == (State.FAILED, reason)
    assert check.remedy


@pytest.mark.parametrize(
    ("profiles", "reason"),
    [
        ((), "no_profile"),
        ((profile(-1, ["UDID-A"]),), "no_profile"),
        (("not a plist",), "no_profile"),
        ((profile(300, ["UDID-B"]),), "device_not_provisioned"),
        ((profile(3, ["UDID-A"]),), "profile_ends"),
        ((profile(300),), None),
    ],
)
def test_profiles_are_checked_for_dates_and_devices(
    profiles: tuple[str, ...], reason: str | None, tmp_path: Path
) -> None:
    assert mac(tmp_path, *profiles)["profiles"].reason == reason


def test_iphones_on_another_system_have_no_toolchain() -> None:
    (check,) = xcode_checks(["UDID-A"], is_mac=False)
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
