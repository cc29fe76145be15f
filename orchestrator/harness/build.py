"""Builds the harness app: `swift build` for virtual phones, Xcode for iPhones."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, Never, Protocol

from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import BuildError
from orchestrator.harness.package import REPO_ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE_DIR: Final = REPO_ROOT / "ios_harness"
PRODUCT: Final = "harness-host"
BUILD_LIMIT_S: Final = 900.0

_LAST_LINES: Final = 20
_LOCK_POLL_S: Final = 0.1
_SOURCE_SUFFIXES: Final = frozenset({".swift", ".c", ".h", ".modulemap", ".json"})


class Sink(Protocol):
    """Takes a compiler's output."""

    def write(self, text: str, /) -> object:
        """Take some of it."""
        ...


def build_host(
    sink: Sink, *, package_dir: Path = PACKAGE_DIR, limit_s: float = BUILD_LIMIT_S
) -> Path | None:
    """Build `harness-host` in release and return the binary; equal sources are built once.

    Blocks: call it from a worker thread. Builders exclude each other by a file lock.

    Args:
        sink: Gets the compiler's output as it comes.
        package_dir: The Swift package.
        limit_s: Seconds for waiting and building together.

    Returns:
        The binary, or None where there is no Swift toolchain or the package is not there (a wheel
        carries no Swift sources): the caller then takes the stand-in app and says so.

    Raises:
        BuildError: If the build fails, takes too long, or gives no binary.
    """
    swift = shutil.which("swift")
    if swift is None or not (package_dir / "Package.swift").is_file():
        return None
    deadline = Deadline.after(limit_s)
    cache = package_dir / ".build" / "fleet"
    cache.mkdir(parents=True, exist_ok=True)
    with _only_builder(cache / "lock", deadline):
        cached = cache / f"{PRODUCT}-{_source_digest(package_dir, swift)}"
        if not cached.is_file():
            _build(swift, package_dir, cache / "build.log", sink, deadline)
            _keep(package_dir / ".build" / "release" / PRODUCT, cached)
        return cached


def build_for_iphone() -> Never:
    """Build the app that runs on an iPhone.

    Raises:
        BuildError: Always: an iPhone runs only what Xcode has built and signed.
    """
    raise BuildError(
        "Xcode is needed to build the harness app for an iPhone",
        remedy="Install Xcode 16 or later from the App Store on a Mac, open it once, and run "
        "`sudo xcode-select -s /Applications/Xcode.app`; or soak virtual phones with --virtual",
    )


@contextlib.contextmanager
def _only_builder(path: Path, deadline: Deadline) -> Iterator[None]:
    """Hold the lock file; the kernel drops it with the process, however that ends."""
    with path.open("a") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                _require_time(deadline, f"another build holds {path}")
                time.sleep(_LOCK_POLL_S)
        yield


def _require_time(deadline: Deadline, facts: str) -> None:
    if deadline.passed:
        raise BuildError(f"no harness app within {deadline.limit_s:g} s: {facts}")


def _source_digest(package_dir: Path, swift: str) -> str:
    """Return 16 hex digits over everything the binary is made from."""
    digest = hashlib.sha256(os.path.realpath(swift).encode())
    manifests = [package_dir / "Package.swift", package_dir / "Package.resolved"]
    for path in sorted([*manifests, *(package_dir / "Sources").rglob("*")]):
        if path.is_file() and path.suffix in {*_SOURCE_SUFFIXES, ".resolved"}:
            content = path.read_bytes()
            name = path.relative_to(package_dir).as_posix()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def _command(swift: str, package_dir: Path) -> list[str]:
    command = [swift, "build", "-c", "release", "--product", PRODUCT]
    if sys.platform == "linux":  # Apple platforms carry the library and refuse the flag (not run)
        command.append("--static-swift-stdlib")
    return [*command, "--package-path", str(package_dir)]


def _build(swift: str, package_dir: Path, log: Path, sink: Sink, deadline: Deadline) -> None:
    last_lines: deque[str] = deque(maxlen=_LAST_LINES)
    with (
        log.open("w") as copy,
        subprocess.Popen(
            _command(swift, package_dir),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # so that a time-out ends the compilers too
        ) as process,
        _ended_at(process, deadline),
    ):
        for line in process.stdout or ():
            copy.write(line)
            sink.write(line)
            last_lines.append(line)
    _require_time(deadline, f"swift build was ended, see {log}")
    if process.returncode != 0:
        tail = "".join(last_lines).rstrip()
        raise BuildError(
            f"swift build exited with {process.returncode}, its last lines:\n{tail}\n",
            remedy=f"The whole log is {log}",
        )


@contextlib.contextmanager
def _ended_at(process: subprocess.Popen[str], deadline: Deadline) -> Iterator[None]:
    """End the process group at the deadline, or when the body is left early."""
    timer = threading.Timer(deadline.remaining_s(), _end_group, (process,))
    timer.start()
    try:
        yield
        process.wait()
    finally:
        timer.cancel()
        if process.poll() is None:
            _end_group(process)


def _end_group(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _keep(binary: Path, cached: Path) -> None:
    """Copy the binary into the cache as a whole or not at all, and drop the ones before it."""
    if not binary.is_file():
        raise BuildError(f"swift build ended well but {binary} is not there")
    partial = cached.with_suffix(".partial")
    shutil.copy2(binary, partial)
    partial.replace(cached)
    for other in cached.parent.glob(f"{PRODUCT}-*"):
        if other != cached:
            other.unlink()
