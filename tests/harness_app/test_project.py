"""The project file holds together: Xcode opens it and xcodebuild alone builds it."""

from __future__ import annotations

import plistlib
import re
import xml.etree.ElementTree as ET
from typing import Any, Final

import pytest

from tests.harness_app.openstep import parse
from tests.harness_app.places import APP, PACKAGE, PROJECT

_ID: Final = re.compile(r"[0-9A-F]{24}")


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    text = (PROJECT / "project.pbxproj").read_text(encoding="utf-8")
    assert text.startswith("// !$*UTF8*$!\n")
    plist = parse(text)
    assert isinstance(plist, dict)
    return plist


@pytest.fixture(scope="module")
def objects(project: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = project["objects"]
    return found


def _of(objects: dict[str, dict[str, Any]], isa: str) -> list[tuple[str, dict[str, Any]]]:
    return [(name, entry) for name, entry in objects.items() if entry["isa"] == isa]


def _settings(objects: dict[str, dict[str, Any]], configuration_list: str) -> list[dict[str, Any]]:
    names = objects[configuration_list]["buildConfigurations"]
    return [objects[name]["buildSettings"] for name in names]


def _references(value: object) -> set[str]:
    if isinstance(value, str):
        return {value} if _ID.fullmatch(value) else set()
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {found for part in parts for found in _references(part)}


def test_the_format_is_that_of_xcode_16(project: dict[str, Any]) -> None:
    assert project["archiveVersion"] == "1"
    assert project["objectVersion"] == "77"
    assert project["objects"][project["rootObject"]]["isa"] == "PBXProject"
    assert project["objects"][project["rootObject"]]["preferredProjectObjectVersion"] == "77"


def test_every_id_is_well_formed_and_every_reference_meets_an_object(
    project: dict[str, Any], objects: dict[str, dict[str, Any]]
) -> None:
    assert all(_ID.fullmatch(name) for name in objects)
    used = _references([project["rootObject"], list(objects.values())])
    targets = objects[project["rootObject"]]["attributes"]["TargetAttributes"]
    assert used | set(targets) == set(objects)


def test_the_sources_are_a_synchronized_folder_that_exists(
    objects: dict[str, dict[str, Any]],
) -> None:
    ((name, group),) = _of(objects, "PBXFileSystemSynchronizedRootGroup")
    ((_, target),) = _of(objects, "PBXNativeTarget")
    assert target["fileSystemSynchronizedGroups"] == [name]
    assert list((APP / group["path"]).glob("*.swift"))
    ((_, sources),) = _of(objects, "PBXSourcesBuildPhase")
    assert sources["files"] == []


def test_the_folder_has_one_entry_point_and_nothing_but_sources() -> None:
    files = [file for file in (APP / "HarnessApp").rglob("*") if file.is_file()]
    assert {file.suffix for file in files} == {".swift"}
    assert sum("@main" in file.read_text(encoding="utf-8") for file in files) == 1


def test_the_target_is_an_app_with_its_three_phases(objects: dict[str, dict[str, Any]]) -> None:
    ((_, target),) = _of(objects, "PBXNativeTarget")
    assert target["productType"] == "com.apple.product-type.application"
    assert [objects[phase]["isa"] for phase in target["buildPhases"]] == [
        "PBXSourcesBuildPhase", "PBXFrameworksBuildPhase", "PBXResourcesBuildPhase",
    ]  # fmt: skip
    product = objects[target["productReference"]]
    assert product["path"] == "HarnessApp.app"
    assert product["sourceTree"] == "BUILT_PRODUCTS_DIR"


def test_the_package_is_the_one_beside_the_app_and_offers_what_is_linked(
    objects: dict[str, dict[str, Any]],
) -> None:
    ((_, reference),) = _of(objects, "XCLocalSwiftPackageReference")
    manifest = (APP / reference["relativePath"]).resolve() / "Package.swift"
    assert manifest == PACKAGE / "Package.swift"
    offered = set(re.findall(r'\.library\(name: "(\w+)"', manifest.read_text(encoding="utf-8")))
    ((_, target),) = _of(objects, "PBXNativeTarget")
    wanted = {objects[name]["productName"] for name in target["packageProductDependencies"]}
    assert wanted <= offered
    ((_, linked),) = _of(objects, "PBXFrameworksBuildPhase")
    assert {objects[objects[name]["productRef"]]["productName"] for name in linked["files"]} == (
        wanted
    )


def test_every_import_of_the_app_is_linked_or_part_of_the_system(
    objects: dict[str, dict[str, Any]],
) -> None:
    linked = {entry["productName"] for _, entry in _of(objects, "XCSwiftPackageProductDependency")}
    sources = (APP / "HarnessApp").glob("*.swift")
    imported = {
        name
        for file in sources
        for name in re.findall(r"^import (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert imported - {"SwiftUI", "UIKit", "Foundation", "Combine"} <= linked


def test_the_settings_are_those_of_an_ios_18_app(
    project: dict[str, Any], objects: dict[str, dict[str, Any]]
) -> None:
    root = objects[project["rootObject"]]
    for settings in _settings(objects, root["buildConfigurationList"]):
        assert settings["IPHONEOS_DEPLOYMENT_TARGET"] == "18.0"
        assert settings["SDKROOT"] == "iphoneos"
        assert settings["SWIFT_VERSION"] == "6.0"
    ((_, target),) = _of(objects, "PBXNativeTarget")
    for settings in _settings(objects, target["buildConfigurationList"]):
        assert settings["GENERATE_INFOPLIST_FILE"] == "YES"
        assert settings["INFOPLIST_KEY_UIFileSharingEnabled"] == "YES"
        assert settings["CODE_SIGN_STYLE"] == "Automatic"
        assert settings["TARGETED_DEVICE_FAMILY"] == "1"
        assert "DEVELOPMENT_TEAM" not in settings  # given on the command line


def test_debug_and_release_are_there_and_release_keeps_symbols(
    objects: dict[str, dict[str, Any]],
) -> None:
    for _, entry in _of(objects, "XCConfigurationList"):
        assert [objects[name]["name"] for name in entry["buildConfigurations"]] == [
            "Debug", "Release",
        ]  # fmt: skip
        assert entry["defaultConfigurationName"] == "Release"
    formats = {
        (entry["name"], entry["buildSettings"].get("DEBUG_INFORMATION_FORMAT"))
        for _, entry in _of(objects, "XCBuildConfiguration")
    }
    assert ("Release", "dwarf-with-dsym") in formats


def test_the_memory_entitlement_is_an_option_beside_the_default(
    objects: dict[str, dict[str, Any]],
) -> None:
    ((_, target),) = _of(objects, "PBXNativeTarget")
    for settings in _settings(objects, target["buildConfigurationList"]):
        assert settings["CODE_SIGN_ENTITLEMENTS"] == "$(HARNESS_ENTITLEMENTS)"
        default = APP / settings["HARNESS_ENTITLEMENTS"]
        assert plistlib.loads(default.read_bytes()) == {}
        option = default.with_name("IncreasedMemory.entitlements")
        assert plistlib.loads(option.read_bytes()) == {
            "com.apple.developer.kernel.increased-memory-limit": True
        }


def test_the_shared_scheme_builds_the_target_and_launches_it_without_a_debugger(
    objects: dict[str, dict[str, Any]],
) -> None:
    scheme = ET.parse(PROJECT / "xcshareddata/xcschemes/HarnessApp.xcscheme").getroot()  # noqa: S314 - ours
    references = scheme.findall(".//BuildableReference")
    ((target, _),) = _of(objects, "PBXNativeTarget")
    assert references
    for reference in references:
        assert reference.get("BlueprintIdentifier") == target
        assert reference.get("BuildableName") == "HarnessApp.app"
        assert reference.get("ReferencedContainer") == f"container:{PROJECT.name}"
    launch = scheme.find("LaunchAction")
    # A debugger lifts the memory limit: a soak under it proves nothing.
    assert launch is not None
    assert launch.get("selectedDebuggerIdentifier") == ""
    assert launch.get("buildConfiguration") == "Release"
