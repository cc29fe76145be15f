from __future__ import annotations

import stat
import zipfile
from typing import TYPE_CHECKING

import pytest

from orchestrator.virtual.services.apps.package import InstallRefusedError, inspect, unpack
from tests.virtual.apps import BUNDLE_ID, pack

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.virtual.services.apps.package import Package


def install(archive: Path, target: Path, phone_os: str = "18.5") -> Package:
    target.mkdir()
    return inspect(unpack(archive, target), phone_os)


def test_a_package_is_unpacked_with_its_executable_bit(tmp_path: Path) -> None:
    package = install(pack(tmp_path / "a.ipa"), tmp_path / "out")
    assert package.bundle_id == BUNDLE_ID
    assert (package.folder / "Soak").stat().st_mode & 0o111 == 0o111


def test_the_executable_becomes_executable_even_if_the_archive_lost_the_bit(tmp_path: Path) -> None:
    package = install(pack(tmp_path / "a.ipa", mode=0o644), tmp_path / "out")
    assert (package.folder / "Soak").stat().st_mode & stat.S_IXUSR


def test_files_beside_the_app_are_left_out(tmp_path: Path) -> None:
    extra = {"iTunesMetadata.plist": b"x", "Payload/Soak.app/data/x.bin": b"data"}
    package = install(pack(tmp_path / "a.ipa", extra=extra), tmp_path / "out")
    assert (package.folder / "data" / "x.bin").read_bytes() == b"data"
    assert not (tmp_path / "out" / "iTunesMetadata.plist").exists()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"CFBundleIdentifier": None}, "APIInternalError"),
        ({"CFBundleIdentifier": "../../evil"}, "APIInternalError"),
        ({"CFBundleIdentifier": 7}, "APIInternalError"),
        ({"CFBundleExecutable": None}, "MissingBundleExecutable"),
        ({"CFBundleExecutable": "../Soak"}, "MissingBundleExecutable"),
        ({"CFBundleExecutable": "Other"}, "MissingBundleExecutable"),
        ({"CFBundleExecutable": ".."}, "MissingBundleExecutable"),
        ({"MinimumOSVersion": "26.0"}, "DeviceOSVersionTooLow"),
        ({"UIDeviceFamily": [2]}, "DeviceFamilyNotSupported"),
    ],
)
def test_a_bad_info_plist_is_refused_by_name(
    tmp_path: Path, changes: dict[str, object], code: str
) -> None:
    with pytest.raises(InstallRefusedError) as refusal:
        install(pack(tmp_path / "a.ipa", info=changes), tmp_path / "out")
    assert refusal.value.code == code


def test_an_info_plist_that_is_no_plist_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.ipa", "w") as ipa:
        ipa.writestr("Payload/Soak.app/Info.plist", b"nonsense")
    with pytest.raises(InstallRefusedError, match="PackageInspectionFailed"):
        install(tmp_path / "a.ipa", tmp_path / "out")


@pytest.mark.parametrize("name", ["Payload/Soak.app/../../evil", "/evil", "../evil"])
def test_an_entry_that_leads_out_is_refused_and_nothing_is_written(
    tmp_path: Path, name: str
) -> None:
    archive = pack(tmp_path / "a.ipa", extra={name: b"x"})
    with pytest.raises(InstallRefusedError, match="leads out"):
        install(archive, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_symbolic_links_are_refused(tmp_path: Path) -> None:
    archive = pack(tmp_path / "a.ipa")
    link = zipfile.ZipInfo("Payload/Soak.app/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(archive, "a") as ipa:
        ipa.writestr(link, "/etc")
    with pytest.raises(InstallRefusedError, match="symbolic link"):
        install(archive, tmp_path / "out")


def test_a_package_with_two_apps_or_none_is_refused(tmp_path: Path) -> None:
    two = pack(tmp_path / "two.ipa", extra={"Payload/Other.app/Info.plist": b"x"})
    with pytest.raises(InstallRefusedError, match=r"2 \.app folders"):
        install(two, tmp_path / "out2")
    with zipfile.ZipFile(tmp_path / "none.ipa", "w") as ipa:
        ipa.writestr("readme", b"x")
    with pytest.raises(InstallRefusedError, match=r"0 \.app folders"):
        install(tmp_path / "none.ipa", tmp_path / "out0")


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    whole = pack(tmp_path / "a.ipa").read_bytes()
    damaged = tmp_path / "damaged.ipa"
    for data in (b"nonsense", whole[:100], whole[: len(whole) // 2]):
        damaged.write_bytes(data)
        with pytest.raises(InstallRefusedError, match="PackageExtractionFailed"):
            unpack(damaged, tmp_path)
