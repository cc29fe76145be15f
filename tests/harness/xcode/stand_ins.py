"""Executables in place of Apple's tools: they note their arguments and answer as is documented."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

VERSION = "Xcode 16.4\nBuild version 16F6\n"
_NOTE = """\
for word in "$(basename "$0")" "$@"; do printf "%s\\n" "$word"; done >> {calls}
echo >> {calls}
"""
_DERIVED = """\
while [ $# -gt 0 ]; do
  case "$1" in
    -derivedDataPath) derived=$2 ;;
    -resultBundlePath) results=$2 ;;
  esac
  shift
done
"""


@dataclass(frozen=True, slots=True)
class Mac:
    """A folder of stand-ins that is the whole search path, besides the system's shell."""

    folder: Path
    calls_file: Path

    @classmethod
    def install(cls, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Mac:
        tools = folder / "mac"
        tools.mkdir()
        mac = cls(tools, folder / "calls")
        monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
        mac.answer("xcodebuild", VERSION)
        mac.answer("codesign")
        return mac

    def script(self, tool: str, body: str) -> None:
        path = self.folder / tool
        note = _NOTE.format(calls=shlex.quote(str(self.calls_file)))
        path.write_text(f"#!/bin/sh\n{note}{body}")
        path.chmod(0o755)

    def answer(self, tool: str, text: str = "", exit_code: int = 0) -> None:
        """Have a tool say something and end."""
        (self.folder / f"{tool}.txt").write_text(text)
        self.script(tool, f"cat {shlex.quote(str(self.folder / tool))}.txt\nexit {exit_code}\n")

    def builds(self, app: Path) -> None:
        """Have xcodebuild leave a copy of an app where Xcode does."""
        source = shlex.quote(str(app))
        self.script(
            "xcodebuild",
            f'if [ "$1" = -version ]; then printf {shlex.quote(VERSION)}; exit 0; fi\n{_DERIVED}'
            'mkdir -p "$derived/Build/Products/Release-iphoneos" "$results"\n'
            f'cp -R {source} "$derived/Build/Products/Release-iphoneos/"\n'
            "echo '** BUILD SUCCEEDED **'\n",
        )

    def fails(self, text: str, exit_code: int, *, results: str | None = None) -> None:
        """Have xcodebuild fail a build; `results` is what xcresulttool says of its bundle."""
        (self.folder / "failure.txt").write_text(text)
        said = shlex.quote(str(self.folder / "failure.txt"))
        bundle = 'mkdir -p "$results"\n' if results is not None else ""
        self.script(
            "xcodebuild",
            f'if [ "$1" = -version ]; then printf {shlex.quote(VERSION)}; exit 0; fi\n'
            f"{_DERIVED}{bundle}cat {said}\nexit {exit_code}\n",
        )
        if results is not None:
            self.answer("xcrun", results)

    def without(self, tool: str) -> None:
        (self.folder / tool).unlink()

    def calls(self) -> list[list[str]]:
        """Every command line so far, word by word."""
        if not self.calls_file.exists():
            return []
        text = self.calls_file.read_text().removesuffix("\n\n")
        return [block.split("\n") for block in text.split("\n\n")]


def make_project(folder: Path) -> Path:
    """A package with an app's project beside it."""
    project = folder / "ios_harness" / "HarnessApp" / "HarnessApp.xcodeproj"
    project.mkdir(parents=True)
    (project / "project.pbxproj").write_text("// !$*UTF8*$!\n")
    (folder / "ios_harness" / "Package.swift").write_text("// manifest")
    (folder / "ios_harness" / "Sources").mkdir()
    (folder / "ios_harness" / "Sources" / "main.swift").write_text("first")
    return project
