"""Fetches the device tests of the installed pymobiledevice3, and runs them.

They are in its source distribution, which is downloaded for each run and thrown away: it is
GPL-3.0-or-later and no part of this project.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TEST_LIMIT_S: Final = 120
SUITE_LIMIT_S: Final = 1500

_SERVICES: Final = (
    *("lockdown", "afc", "house_arrest", "apps", "crash_reports", "list_devices"),
    *("syslog_relay", "mobile_image_mounter", "tcp_forwarder"),
)
FILES: Final = (
    *(f"tests/services/test_{name}.py" for name in _SERVICES),
    "tests/services/instruments",
    "tests/remote",
)
_RUNNER: Final = ("pytest-asyncio==1.*", "httpx==0.28.*")  # what the suite needs beside pytest


@dataclass(frozen=True, slots=True)
class Suite:
    """The suite, unpacked."""

    folder: Path
    libraries: Path  # what only it needs

    def run(self, usbmux: str, home: Path, junit: Path, chosen: Sequence[str] = FILES) -> int:
        """Run it against the phone behind a usbmuxd and return pytest's exit code."""
        command = [sys.executable, "-m", "pytest", "-q", "-m", "device", "--no-header", "--tb=line"]
        command += ["--timeout", str(TEST_LIMIT_S), "-p", "no:cacheprovider"]
        command += [f"--junit-xml={junit}", *chosen]
        environment = self._environment(usbmux, home)
        ended = subprocess.run(
            command, cwd=self.folder, env=environment, timeout=SUITE_LIMIT_S, check=False
        )
        return ended.returncode

    def _environment(self, usbmux: str, home: Path) -> Mapping[str, str]:
        return {
            **os.environ,
            "HOME": str(home),
            "XDG_DATA_HOME": str(home),
            "PYTHONPATH": str(self.libraries),
            "USBMUXD_SOCKET_ADDRESS": usbmux,
        }


def client_version() -> str:
    """Return the version of the client that is installed."""
    return importlib.metadata.version("pymobiledevice3")


def fetch(folder: Path) -> Suite:
    """Download and unpack the suite of the installed client into an empty folder."""
    requirement = f"pymobiledevice3=={client_version()}"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    download = ["download", "--no-binary", ":all:", "--no-deps", "--dest", str(folder)]
    subprocess.run([*pip, *download, requirement], check=True)
    libraries = folder / "libraries"
    install = ["install", "--no-deps", "--target", str(libraries)]
    subprocess.run([*pip, *install, *_RUNNER], check=True)
    (archive,) = folder.glob("pymobiledevice3-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return Suite(folder / archive.name.removesuffix(".tar.gz"), libraries)
