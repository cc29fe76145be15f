"""Virtual phones in a child process, and a small app for them."""

from __future__ import annotations

import json
import plistlib
import subprocess
import sys
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
BUNDLE_ID = "dev.example.tiny"

# What the app does is said by its environment, so that one package serves all tests.
APP_SOURCE = """#!{python}
import json, os, socket, sys, time
print("tiny " + json.dumps([os.environ.get("TINY_WORD"), sys.argv[1:]]), flush=True)
if os.environ.get("TINY_ECHO"):
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.environ["FLEET_SOCKET"])
    server.listen(1)
    print("listening", flush=True)
    peer, _ = server.accept()
    peer.sendall(peer.recv(100).upper())
    peer.close()
if os.environ.get("TINY_EXIT"):
    sys.exit(int(os.environ["TINY_EXIT"]))
if os.environ.get("TINY_SIGNAL"):
    os.kill(os.getpid(), int(os.environ["TINY_SIGNAL"]))
while True:
    time.sleep(60)
"""


@dataclass(frozen=True, slots=True)
class FarmProcess:
    """A farm that takes orders; see `farm_child`."""

    address: str
    tunneld: str
    udids: tuple[str, ...]
    _orders: IO[str]
    _answers: IO[str]

    def order(self, *words: str) -> None:
        self._orders.write(" ".join(words) + "\n")
        self._orders.flush()
        assert self._answers.readline() == "done\n"


@contextmanager
def farm_process(folder: Path, count: int) -> Iterator[FarmProcess]:
    """Run a farm for the length of a `with` block."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.device.farm_child", str(folder), str(count)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        described = json.loads(process.stdout.readline())
        yield FarmProcess(
            described["usbmux"],
            described["tunneld"],
            tuple(phone["udid"] for phone in described["phones"]),
            process.stdin,
            process.stdout,
        )
        process.stdin.close()
        process.wait(10)


def make_ipa(path: Path, bundle_id: str = BUNDLE_ID) -> Path:
    """Write a package with the small app and return its path."""
    info = {
        "CFBundleIdentifier": bundle_id,
        "CFBundleExecutable": "Tiny",
        "CFBundleVersion": "1",
        "CFBundleShortVersionString": "1.0",
    }
    executable = zipfile.ZipInfo("Payload/Tiny.app/Tiny")
    executable.external_attr = 0o755 << 16
    with zipfile.ZipFile(path, "w") as package:
        package.writestr("Payload/Tiny.app/Info.plist", plistlib.dumps(info))
        package.writestr(executable, APP_SOURCE.replace("{python}", sys.executable))
    return path
