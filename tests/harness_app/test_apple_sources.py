"""Sources that no Linux machine builds: they parse, keep to the rules, and use only listed APIs."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from tests.harness_app.places import (
    APP,
    APPLE_LAYER,
    APPLE_ONLY,
    PACKAGE,
    ROOT,
    swift_files,
)

if TYPE_CHECKING:
    from pathlib import Path

_PARSE_LIMIT_S: Final = 60
# Names of Apple's frameworks as the sources spell them.
_APPLE_NAME: Final = re.compile(
    r"\b(?:ML[A-Z]\w+|UI[A-Z]\w+|NS[A-Z]\w+|DispatchSource\w*|ProcessInfo|Notification(?:Center)?"
    r"|autoreleasepool|Bundle|ObservableObject|Published|StateObject|ObservedObject|WindowGroup"
    r"|ViewModifier|ViewBuilder|ProgressView|RoundedRectangle|ContinuousClock|MainActor)\b"
)
_C_NAME: Final = re.compile(
    r"\b(task_info|os_proc_available_memory|sysctl|sysctlbyname|_dyld_get_image_header)\("
)


def _code(file: Path) -> str:
    """Return a source without its comments and strings."""
    text = re.sub(r"//[^\n]*", "", file.read_text(encoding="utf-8"))
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)


@pytest.mark.skipif(shutil.which("swiftc") is None, reason="no swiftc on PATH")
def test_all_apple_only_sources_parse() -> None:
    files = [str(file) for file in swift_files(*APPLE_ONLY)]
    command = ["swiftc", "-parse", "-target", "arm64-apple-ios18.0", *files]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=_PARSE_LIMIT_S, check=False
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif(shutil.which("swiftc") is None, reason="no swiftc on PATH")
def test_the_parser_can_fail(tmp_path: Path) -> None:
    broken = tmp_path / "broken.swift"
    broken.write_text("struct {", encoding="utf-8")
    result = subprocess.run(
        ["swiftc", "-parse", str(broken)],
        capture_output=True,
        timeout=_PARSE_LIMIT_S,
        check=False,
    )
    assert result.returncode != 0


@pytest.mark.parametrize("word", ["Synchronization", "@Observable", "#Preview", "@Test", "#expect"])
def test_the_apple_layer_needs_no_macro_and_no_new_runtime(word: str) -> None:
    assert not [file.name for file in swift_files(*APPLE_LAYER) if word in _code(file)]


def test_core_ml_is_imported_with_its_old_annotations_in_mind() -> None:
    for file in swift_files(*APPLE_LAYER):
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if "CoreML" in line]
        imports = [line for line in lines if line.endswith("import CoreML")]
        assert all(line == "@preconcurrency import CoreML" for line in imports), file.name


def test_platform_sources_vanish_where_there_is_no_ios() -> None:
    for file in swift_files(PACKAGE / "Sources" / "ApplePlatform"):
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line]
        assert lines[1] == "#if os(iOS)", file.name
        assert lines[-1] == "#endif", file.name


def test_traps_are_rare() -> None:
    folders = (PACKAGE / "Sources", APP)
    found = [
        f"{file.name}: {word}"
        for file in swift_files(*folders)
        for word in ("try!", "fatalError(", "as! ")
        for _ in range(file.read_text(encoding="utf-8").count(word))
    ]
    assert len(found) <= 3, found


def test_every_apple_api_in_use_is_listed_with_its_availability() -> None:
    listed = (ROOT / "docs" / "apple-api.md").read_text(encoding="utf-8")
    used = {name for file in swift_files(*APPLE_LAYER) for name in _APPLE_NAME.findall(_code(file))}
    for file in (PACKAGE / "Sources" / "CApple").glob("*.c"):
        used |= set(_C_NAME.findall(_code(file)))
    assert len(used) > 40
    assert not [name for name in sorted(used) if not re.search(rf"\b{name}\b", listed)]


def test_no_row_of_the_list_is_out_of_date() -> None:
    listed = (ROOT / "docs" / "apple-api.md").read_text(encoding="utf-8")
    sources = swift_files(*APPLE_LAYER) + list((PACKAGE / "Sources" / "CApple").glob("*.[ch]"))
    text = "\n".join(file.read_text(encoding="utf-8") for file in sources)
    rows = re.findall(r"^\| `([^`]+)`", listed, re.MULTILINE)
    assert len(rows) > 40
    for row in rows:
        name = re.split(r"[(.:<]", row.removeprefix("@"))[0]
        assert re.search(rf"\b{re.escape(name)}\b", text), row
