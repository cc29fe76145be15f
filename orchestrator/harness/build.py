"""Builds the app for virtual phones with `swift build`; `xcode/` builds that for iPhones."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, Final

from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import BuildError
from orchestrator.harness.package import REPO_ROOT
from orchestrator.harness.tool import Sink, run_tool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE_DIR: Final = REPO_ROOT / "ios_harness"
PRODUCT: Final = "harness-host"
BUILD_LIMIT_S: Final = 900.0

_LAST_LINES: Final = 20
_LOCK_POLL_S: Final = 0.1
_SOURCE_SUFFIXES: Final = frozenset({".swift", ".c", ".h", ".modulemap", ".json"})


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
    with only_builder(cache / "lock", deadline):
        cached = cache / f"{PRODUCT}-{_source_digest(package_dir, swift)}"
        if not cached.is_file():
            _build(swift, package_dir, cache / "build.log", sink, deadline)
            _keep(package_dir / ".build" / "release" / PRODUCT, cached)
        return cached


@contextlib.contextmanager
def only_builder(path: Path, deadline: Deadline) -> Iterator[None]:
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
    done = run_tool(_command(swift, package_dir), deadline=deadline, log=log, sink=sink)
    _require_time(deadline, f"swift build was ended, see {log}")
    if done.exit_code != 0:
        tail = done.tail(_LAST_LINES)
        raise BuildError(
            f"swift build exited with {done.exit_code}, its last lines:\n{tail}\n",
            remedy=f"The whole log is {log}",
        )


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
