"""Packs small scripts as .ipa files."""

from __future__ import annotations

import plistlib
import sys
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BUNDLE_ID = "com.example.soak"

GREETER = """
import os, sys, time
print("args", *sys.argv[1:], flush=True)
print("run", os.environ.get("RUN"), flush=True)
print("home", os.getcwd() == os.path.realpath(os.environ["HOME"]), flush=True)
time.sleep(60)
"""

ECHO_SERVER = """
import os, socket
server = socket.socket(socket.AF_UNIX)
server.bind(os.environ["FLEET_SOCKET"])
server.listen()
print("listening", flush=True)
while True:
    connection, _ = server.accept()
    while data := connection.recv(65536):
        connection.sendall(data)
"""


def pack(
    path: Path,
    source: str = GREETER,
    *,
    executable: str | None = "Soak",
    mode: int = 0o755,
    extra: dict[str, bytes] | None = None,
    info: Mapping[str, object] | None = None,
) -> Path:
    """Write an .ipa whose executable is a Python script; `info` changes its Info.plist."""
    values = {
        "CFBundleIdentifier": BUNDLE_ID,
        "CFBundleExecutable": "Soak",
        "CFBundleVersion": "7",
        "CFBundleShortVersionString": "1.2.3",
        "MinimumOSVersion": "18.0",
        **(info or {}),
    }
    present = {name: value for name, value in values.items() if value is not None}
    with zipfile.ZipFile(path, "w") as ipa:
        ipa.writestr("Payload/Soak.app/Info.plist", plistlib.dumps(present))
        if executable is not None:
            entry = zipfile.ZipInfo(f"Payload/Soak.app/{executable}")
            entry.external_attr = mode << 16
            ipa.writestr(entry, f"#!{sys.executable}\n{source}")
        for name, data in (extra or {}).items():
            ipa.writestr(name, data)
    return path
