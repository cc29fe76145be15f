"""A build for iPhones with stand-ins for Apple's tools: exact command lines, causes, the cache."""

from __future__ import annotations

import io
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.domain.outcome import ExitCode
from orchestrator.harness.signed.layout import read_app
from orchestrator.harness.xcode.build import BuildOrder, XcodeError, build_for_iphone
from orchestrator.harness.xcode.commands import AscKey
from orchestrator.harness.xcode.failures import BuildCause
from tests.harness.signed.making import AppParts
from tests.harness.xcode.stand_ins import Mac, make_project
from tests.harness.xcode.test_failures import CASES, COMMAND_LINE_TOOLS, LICENCE, PERSONAL

if TYPE_CHECKING:
    from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mac:
    found = Mac.install(tmp_path, monkeypatch)
    found.builds(AppParts().folder(tmp_path / "made" / "HarnessApp.app"))
    return found


def order(folder: Path, **changes: Any) -> BuildOrder:  # noqa: ANN401 - fields
    project = folder / "ios_harness" / "HarnessApp" / "HarnessApp.xcodeproj"
    values: dict[str, Any] = {
        "project": project if project.exists() else make_project(folder),
        "scheme": "HarnessApp",
        "bundle_id": "dev.example.harness",
        "team_id": "ABCDE12345",
        "increased_memory_limit": True,
        "key": AscKey(folder / "AuthKey_K.p8", "KEYID12345", "issuer-uuid"),
        "commit": COMMIT,
        "cache": folder / "cache",
    }
    return BuildOrder(**(values | changes))


def builds(mac: Mac) -> list[list[str]]:
    return [call for call in mac.calls() if call[0] == "xcodebuild" and call[-1] == "build"]


def test_the_command_line_is_the_documented_one_word_by_word(tmp_path: Path, mac: Mac) -> None:
    built = build_for_iphone(order(tmp_path), io.StringIO())
    assert mac.calls()[0] == ["xcodebuild", "-version"]
    (words,) = builds(mac)
    results = words[words.index("-resultBundlePath") + 1]
    assert words == [
        *("xcodebuild", "-project", str(order(tmp_path).project), "-scheme", "HarnessApp"),
        *("-configuration", "Release", "-destination", "generic/platform=iOS"),
        *("-derivedDataPath", str(tmp_path / "cache" / "derived" / COMMIT[:12])),
        *("-resultBundlePath", results),
        *("-allowProvisioningUpdates", "-allowProvisioningDeviceRegistration"),
        *("-authenticationKeyPath", str(tmp_path / "AuthKey_K.p8")),
        *("-authenticationKeyID", "KEYID12345", "-authenticationKeyIssuerID", "issuer-uuid"),
        *("DEVELOPMENT_TEAM=ABCDE12345", "CODE_SIGN_STYLE=Automatic"),
        "PRODUCT_BUNDLE_IDENTIFIER=dev.example.harness",
        *("HARNESS_ENTITLEMENTS=Config/IncreasedMemory.entitlements", "build"),
    ]
    assert results.startswith(str(tmp_path / "cache" / "results"))
    assert results.endswith(".xcresult")
    product = tmp_path / "cache" / "derived" / COMMIT[:12] / "Build/Products/Release-iphoneos"
    app = str(product / "HarnessApp.app")
    assert mac.calls()[-1] == ["codesign", "--verify", "--deep", "--strict", app]
    assert read_app(built.ipa).bundle_id == "dev.example.harness"


def test_an_account_in_xcode_needs_no_key_and_a_plain_app_no_entitlement(
    tmp_path: Path, mac: Mac
) -> None:
    plain = order(tmp_path, key=None, team_id=None, increased_memory_limit=False)
    build_for_iphone(plain, io.StringIO())
    (words,) = builds(mac)
    assert not [word for word in words if word.startswith(("-authentication", "DEVELOPMENT_TEAM"))]
    assert "HARNESS_ENTITLEMENTS=Config/HarnessApp.entitlements" in words


def test_the_log_holds_the_command_line_and_what_was_said(tmp_path: Path, mac: Mac) -> None:
    sink = io.StringIO()
    built = build_for_iphone(order(tmp_path), sink)
    assert built.log is not None
    text = built.log.read_text()
    assert text.startswith("$ xcodebuild -project ")
    assert text.endswith("** BUILD SUCCEEDED **\n")
    assert sink.getvalue() == "** BUILD SUCCEEDED **\n"
    assert mac.calls()


def test_equal_sources_are_built_once_and_changed_ones_again(tmp_path: Path, mac: Mac) -> None:
    first = build_for_iphone(order(tmp_path), io.StringIO())
    again = build_for_iphone(order(tmp_path), io.StringIO())
    assert (first.cached, again.cached, again.ipa) == (False, True, first.ipa)
    assert len(builds(mac)) == 1
    (tmp_path / "ios_harness" / "Sources" / "main.swift").write_text("second")
    assert not build_for_iphone(order(tmp_path), io.StringIO()).cached
    assert not build_for_iphone(order(tmp_path, team_id="OTHER"), io.StringIO()).cached
    assert len(builds(mac)) == 3


def test_a_kept_app_that_no_longer_does_is_built_again(tmp_path: Path, mac: Mac) -> None:
    build_for_iphone(order(tmp_path), io.StringIO())
    refused = order(tmp_path, usable=lambda _: False)
    assert not build_for_iphone(refused, io.StringIO()).cached
    assert len(builds(mac)) == 2


def test_result_bundles_never_meet(tmp_path: Path, mac: Mac) -> None:
    for number in range(3):
        (tmp_path / "cache").mkdir(exist_ok=True)
        build_for_iphone(order(tmp_path, bundle_id=f"dev.example.h{number}"), io.StringIO())
    bundles = [words[words.index("-resultBundlePath") + 1] for words in builds(mac)]
    assert len(set(bundles)) == 3


@pytest.mark.parametrize(("text", "exit_code", "cause"), CASES)
def test_each_failure_is_one_cause_with_its_log_and_exit_5(
    text: str, exit_code: int, cause: BuildCause, tmp_path: Path, mac: Mac
) -> None:
    mac.fails(text, exit_code)
    with pytest.raises(XcodeError) as caught:
        build_for_iphone(order(tmp_path), io.StringIO())
    assert caught.value.cause is cause
    assert caught.value.exit_code is ExitCode.BUILD
    assert caught.value.log is not None
    assert text in caught.value.log.read_text()
    assert str(caught.value.log) in str(caught.value)


def test_the_result_bundle_is_asked_where_the_log_says_nothing(tmp_path: Path, mac: Mac) -> None:
    message = PERSONAL.splitlines()[0].replace('"', '\\"').removeprefix("error: ")
    mac.fails("** BUILD FAILED **", 65, results=f'{{"errors": [{{"message": "{message}"}}]}}')
    with pytest.raises(XcodeError) as caught:
        build_for_iphone(order(tmp_path), io.StringIO())
    assert caught.value.cause is BuildCause.PERSONAL_TEAM
    asked = mac.calls()[-1]
    assert asked[:5] == ["xcrun", "xcresulttool", "get", "build-results", "--path"]
    assert asked[5].endswith(".xcresult")


@pytest.mark.parametrize("answer", ["", "[]", '{"errors": {}}', '{"errors": [1, {"message": 2}]}'])
def test_a_result_bundle_that_answers_otherwise_changes_nothing(
    answer: str, tmp_path: Path, mac: Mac
) -> None:
    mac.fails("error: No Accounts", 65, results=answer)
    with pytest.raises(XcodeError) as caught:
        build_for_iphone(order(tmp_path), io.StringIO())
    assert caught.value.cause is BuildCause.NO_ACCOUNT


@pytest.mark.parametrize(
    ("text", "exit_code", "cause"),
    [
        (LICENCE, 69, BuildCause.LICENCE),
        (COMMAND_LINE_TOOLS, 1, BuildCause.WRONG_XCODE_SELECT),
    ],
)
def test_what_stops_every_tool_is_found_before_a_build(
    text: str, exit_code: int, cause: BuildCause, tmp_path: Path, mac: Mac
) -> None:
    mac.answer("xcodebuild", text, exit_code)
    with pytest.raises(XcodeError) as caught:
        build_for_iphone(order(tmp_path), io.StringIO())
    assert caught.value.cause is cause
    assert not builds(mac)


def test_without_xcode_the_error_says_how_to_get_it(tmp_path: Path, mac: Mac) -> None:
    mac.without("xcodebuild")
    with pytest.raises(XcodeError, match=r"Xcode is needed .* Install Xcode 16") as caught:
        build_for_iphone(order(tmp_path), io.StringIO())
    assert caught.value.cause is BuildCause.NO_XCODE


def test_a_project_that_is_not_there_is_named(tmp_path: Path, mac: Mac) -> None:
    lost = order(tmp_path, project=tmp_path / "X.xcodeproj")
    with pytest.raises(XcodeError, match=r"X\.xcodeproj is not there"):
        build_for_iphone(lost, io.StringIO())
    assert not builds(mac)


def test_a_build_over_its_time_is_ended_with_its_children(tmp_path: Path, mac: Mac) -> None:
    slow = 'if [ "$1" = -version ]; then echo Xcode; exit 0; fi\nsleep 60 & wait\n'
    mac.script("xcodebuild", slow)
    with pytest.raises(XcodeError) as caught:
        build_for_iphone(order(tmp_path, limit_s=2.0), io.StringIO())
    assert caught.value.cause is BuildCause.TIMED_OUT


def test_a_build_without_an_app_is_an_error(tmp_path: Path, mac: Mac) -> None:
    shutil.rmtree(tmp_path / "made")
    (tmp_path / "made" / "HarnessApp.app").parent.mkdir()
    (tmp_path / "made" / "HarnessApp.app").write_text("a file that no .app is")
    mac.script("xcodebuild", 'if [ "$1" = -version ]; then echo Xcode; fi\nexit 0\n')
    with pytest.raises(XcodeError, match="0 apps are in"):
        build_for_iphone(order(tmp_path), io.StringIO())


def test_an_app_whose_seal_is_broken_is_an_error(tmp_path: Path, mac: Mac) -> None:
    said = "HarnessApp.app: a sealed resource is missing or invalid"
    mac.answer("codesign", said, 1)
    with pytest.raises(XcodeError, match="a sealed resource is missing") as caught:
        build_for_iphone(order(tmp_path), io.StringIO())
    assert caught.value.cause is BuildCause.BAD_PRODUCT
