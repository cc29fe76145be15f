"""Building with a scripted `swift`: the real one is exercised by the end-to-end tests."""

from __future__ import annotations

import fcntl
import io
import os
from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.errors import BuildError
from orchestrator.domain.outcome import ExitCode
from orchestrator.harness.build import build_host

if TYPE_CHECKING:
    from pathlib import Path

BUILDS = """\
echo "$@" >> {calls}
echo Compiling StreamingLM
mkdir -p {package}/.build/release
cat {package}/Sources/main.swift > {package}/.build/release/harness-host
"""
FAILS = 'for n in $(seq 1 30); do echo "line $n"; done; echo "error: no such module" >&2; exit 1\n'


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "ios_harness"
    (folder / "Sources").mkdir(parents=True)
    (folder / "Package.swift").write_text("// manifest")
    (folder / "Sources" / "main.swift").write_text("first")
    return folder


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    return tmp_path / "calls"


def install_swift(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: Path, body: str
) -> None:
    folder = tmp_path / "toolchain"
    folder.mkdir(exist_ok=True)
    script = folder / "swift"
    text = body.format(calls=tmp_path / "calls", package=package)
    script.write_text(f"#!/bin/sh\n{text}")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def build(package: Path, sink: io.StringIO | None = None, limit_s: float = 10.0) -> Path:
    binary = build_host(sink or io.StringIO(), package_dir=package, limit_s=limit_s)
    assert binary is not None
    return binary


def test_a_build_streams_its_output_and_gives_the_binary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: Path, calls: Path
) -> None:
    install_swift(tmp_path, monkeypatch, package, BUILDS)
    sink = io.StringIO()
    assert build(package, sink).read_text() == "first"
    assert sink.getvalue() == "Compiling StreamingLM\n"
    assert calls.read_text().startswith("build -c release --product harness-host ")
    assert calls.read_text().endswith(f"--package-path {package}\n")


def test_equal_sources_are_built_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: Path, calls: Path
) -> None:
    install_swift(tmp_path, monkeypatch, package, BUILDS)
    assert build(package) == build(package)
    assert len(calls.read_text().splitlines()) == 1


def test_a_changed_source_is_built_again_and_the_old_binary_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: Path, calls: Path
) -> None:
    install_swift(tmp_path, monkeypatch, package, BUILDS)
    before = build(package)
    (package / "Sources" / "main.swift").write_text("second")
    assert build(package).read_text() == "second"
    assert not before.exists()
    assert len(calls.read_text().splitlines()) == 2


def test_a_failed_build_shows_its_last_lines_and_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: Path
) -> None:
    install_swift(tmp_path, monkeypatch, package, FAILS)
    with pytest.raises(BuildError, match="exited with 1") as caught:
        build(package)
    text = str(caught.value)
    assert "error: no such module" in text
    assert "line 10\n" not in text
    log = package / ".build" / "fleet" / "build.log"
    assert str(log) in text
    assert "line 10\n" in log.read_text()
    assert caught.value.exit_code is ExitCode.BUILD


def test_a_build_that_gives_no_binary_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: Path
) -> None:
    install_swift(tmp_path, monkeypatch, package, "exit 0\n")
    with pytest.raises(BuildError, match="is not there"):
        build(package)


def test_a_build_over_its_time_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: Path
) -> None:
    install_swift(tmp_path, monkeypatch, package, "sleep 60 & wait\n")
    with pytest.raises(BuildError, match=r"within 0\.3 s: swift build was ended"):
        build(package, limit_s=0.3)


def test_a_second_builder_waits_for_the_first_until_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: Path
) -> None:
    install_swift(tmp_path, monkeypatch, package, BUILDS)
    lock = package / ".build" / "fleet" / "lock"
    lock.parent.mkdir(parents=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(BuildError, match="another build holds"):
            build(package, limit_s=0.2)
    assert build(package).read_text() == "first"


def test_without_a_toolchain_there_is_no_binary(
    monkeypatch: pytest.MonkeyPatch, package: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build_host(io.StringIO(), package_dir=package) is None


def test_without_the_sources_there_is_no_binary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: Path
) -> None:
    install_swift(tmp_path, monkeypatch, package, BUILDS)
    assert build_host(io.StringIO(), package_dir=tmp_path / "site-packages") is None
