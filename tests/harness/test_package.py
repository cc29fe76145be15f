from __future__ import annotations

import os
import plistlib
import stat
import subprocess
import zipfile
from pathlib import Path

import pytest

from orchestrator.domain.errors import BuildError
from orchestrator.harness.package import AppIdentity, pack_binary, pack_stand_in
from tests.harness.standin_process import LIMIT_S

EXECUTABLE = "Payload/FleetHarness.app/FleetHarness"


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    path = tmp_path / "harness-host"
    path.write_bytes(b"\x7fELF and more")
    return path


def test_equal_input_gives_equal_bytes(binary: Path, tmp_path: Path) -> None:
    first = pack_binary(binary, tmp_path / "one.ipa").read_bytes()
    os.utime(binary, (1, 1))
    assert pack_binary(binary, tmp_path / "two.ipa").read_bytes() == first


def test_another_binary_gives_another_package(binary: Path, tmp_path: Path) -> None:
    first = pack_binary(binary, tmp_path / "one.ipa").read_bytes()
    binary.write_bytes(b"\x7fELF of another build")
    assert pack_binary(binary, tmp_path / "two.ipa").read_bytes() != first


def test_the_package_holds_one_app_with_an_executable_of_mode_755(
    binary: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(pack_binary(binary, tmp_path / "app.ipa")) as archive:
        assert archive.read(EXECUTABLE) == binary.read_bytes()
        mode = archive.getinfo(EXECUTABLE).external_attr >> 16
        info = plistlib.loads(archive.read("Payload/FleetHarness.app/Info.plist"))
    assert stat.S_ISREG(mode)
    assert stat.S_IMODE(mode) == 0o755
    assert info["CFBundleExecutable"] == "FleetHarness"
    assert info["CFBundleIdentifier"] == "dev.fleet.harness"


def test_another_identity_names_bundle_and_executable(binary: Path, tmp_path: Path) -> None:
    identity = AppIdentity("Chat", "com.example.chat", "2.0", "7")
    with zipfile.ZipFile(pack_binary(binary, tmp_path / "app.ipa", identity)) as archive:
        assert "Payload/Chat.app/Chat" in archive.namelist()
        assert plistlib.loads(archive.read("Payload/Chat.app/Info.plist"))["CFBundleVersion"] == "7"


def test_the_packed_stand_in_runs_as_the_stand_in_app(tmp_path: Path) -> None:
    with zipfile.ZipFile(pack_stand_in(tmp_path / "app.ipa")) as archive:
        launcher = Path(archive.extract(EXECUTABLE, tmp_path))
    launcher.chmod(0o755)
    done = subprocess.run([launcher], env={}, capture_output=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stderr) == (2, b"fleet-harness: FLEET_TOKEN is missing\n")


def test_an_interpreter_with_a_space_in_its_path_is_quoted(tmp_path: Path) -> None:
    ipa = pack_stand_in(tmp_path / "app.ipa", interpreter=Path("/opt/my python/bin/python3"))
    with zipfile.ZipFile(ipa) as archive:
        assert b"exec '/opt/my python/bin/python3' -I -S -c " in archive.read(EXECUTABLE)


def test_a_missing_binary_is_a_build_error(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="cannot pack"):
        pack_binary(tmp_path / "nothing", tmp_path / "app.ipa")


def test_a_package_that_cannot_be_written_is_a_build_error(binary: Path, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="cannot write"):
        pack_binary(binary, binary / "app.ipa")
