"""Runs a command and says what it took, and what a process that runs has taken so far (Linux)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.virtual.child import child_farm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BIN = Path(sys.executable).parent
FLEET = str(BIN / "fleet")
PEER = str(BIN / "pymobiledevice3")
END_LIMIT_S = 60.0  # of a farm: it removes thousands of folders


def run(words: Sequence[str], limit_s: float = 300.0) -> dict[str, float]:
    """Run a command to its end.

    Returns:
        `wall_s`, `cpu_s` with all its children, `peak_mib` of the largest of them.

    Raises:
        subprocess.CalledProcessError: If it fails.
    """
    began_s = time.perf_counter()
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        words_of_error = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.perf_counter() - began_s
    if process.returncode or wall_s > limit_s:
        raise subprocess.CalledProcessError(process.returncode, words, None, words_of_error)
    return {
        "wall_s": wall_s,
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_mib": used.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2),
    }


def found(name: str) -> str | None:
    """Return the path of a peer's program, None where it is not installed."""
    return shutil.which(name)


def cpu_s(pid: int) -> float:
    """Return the processor time of a process, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def farm_of(count: int, *arguments: str) -> Iterator[tuple[Path, dict[str, Any], list[str]]]:
    """Serve virtual phones from a process of their own, in a home of their own.

    Yields:
        The folder of their state, how they are reached and the farm's pid, their UDIDs.
    """
    kept = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        home = Path(name)
        os.environ.update(HOME=name, XDG_DATA_HOME=name)
        state = home / "phones"
        words = ("--phones", str(count), "--folder", str(state), *arguments)
        try:
            with child_farm(*words, end_limit_s=END_LIMIT_S) as (process, farm):
                os.environ["USBMUXD_SOCKET_ADDRESS"] = farm["usbmux"]
                farm["pid"] = process.pid
                yield state, farm, [phone["udid"] for phone in farm["phones"]]
        finally:
            os.environ.clear()
            os.environ.update(kept)
