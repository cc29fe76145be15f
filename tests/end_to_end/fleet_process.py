"""Runs `fleet` as a person does, in processes of its own, with folders of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

FLEET = Path(sys.executable).with_name("fleet")
ROOT = Path(__file__).parents[2]
HAS_SWIFT = shutil.which("swift") is not None
WITHOUT_SWIFT = "/usr/bin:/bin"  # a search path where no toolchain lies

# The smoke scenario in a few seconds: faster tokens, a shorter ramp; what it requires stays.
QUICK = (
    "--duration",
    "7s",
    *("--set", "workload.decode_tokens_per_s=600"),
    *("--set", "workload.ballast_from_token=600"),
    *("--set", "workload.ballast_to_token=1200"),
    *("--set", "evidence.report_wait_s=5"),
)


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that is over, and its directory."""

    output: Path
    exit_code: int
    stdout: str
    stderr: str

    @property
    def path(self) -> Path:
        return (self.output / "latest").resolve()

    @property
    def summary(self) -> dict[str, Any]:
        summary: dict[str, Any] = read_json(self.path / "summary.json")
        return summary

    @property
    def phones(self) -> dict[str, dict[str, Any]]:
        """Phones of the summary by marketing name, for farms that hold each model once."""
        return {phone["model"]: phone for phone in self.summary["phones"]}

    def failed(self, model: str) -> set[str]:
        """Ids of the checks that a phone failed."""
        checks = self.phones[model]["checks"]
        return {check["id"] for check in checks if check["result"] == "fail"}

    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.path / "events.ndjson").read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["kind"] == kind]

    def devices(self) -> list[Path]:
        return sorted((self.path / "devices").iterdir())


def read_json(path: Path) -> Any:  # noqa: ANN401 - JSON
    return json.loads(path.read_bytes())


def records(device: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (device / "telemetry.ndjson").read_bytes().splitlines()]


def kinds(device: Path) -> Counter[str]:
    return Counter(record["kind"] for record in records(device))


def environment(folder: Path, **changes: str) -> dict[str, str]:
    """An environment whose home and state folders are the test's own."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    names = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "FLEET_STATE_DIR": str(home / "state"),
        "NO_COLOR": "1",
        **changes,
    }


def start_fleet(
    folder: Path, *arguments: str, cwd: Path = ROOT, **changes: str
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(FLEET), *arguments],
        cwd=cwd,
        env=environment(folder, **changes),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], output: Path, *, limit_s: float) -> FinishedRun:
    try:
        stdout, stderr = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=60)
        raise AssertionError(f"fleet took over {limit_s} s\n{stdout}\n{stderr}") from None
    return FinishedRun(output, process.returncode, stdout, stderr)


def run_fleet(
    folder: Path, *arguments: str, limit_s: float = 60.0, cwd: Path = ROOT, **changes: str
) -> FinishedRun:
    """Run a command; `soak` gets `--output` below the folder."""
    output = folder / "runs"
    adds = arguments[0] == "soak" and "--output" not in arguments
    words = [*arguments, "--output", str(output)] if adds else [*arguments]
    return finish(start_fleet(folder, *words, cwd=cwd, **changes), output, limit_s=limit_s)


@contextmanager
def served_phones(folder: Path, *arguments: str) -> Iterator[dict[str, Any]]:
    """`fleet virtual serve --json` in the foreground of another process; yields its first line."""
    process = start_fleet(folder, "virtual", "serve", "--json", *arguments)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate(timeout=10)[1]
        yield json.loads(line)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)  # many phones have many folders to remove


def wait_for(condition: Any, limit_s: float, what: str) -> None:  # noqa: ANN401 - any callable
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {limit_s} s"
        time.sleep(0.1)


def processes_mentioning(text: str) -> list[int]:
    """Pids whose environment or command line holds a text: what a run left behind."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            seen = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if state != "Z" and text.encode() in seen:
            found.append(int(folder.name))
    return found
