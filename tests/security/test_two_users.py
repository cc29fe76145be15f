"""Two users of one host on overlapping phones: one waits or is refused by name, nothing is shared.

Separate homes and state folders stand for the users, and one lock folder for the host's. Where the
tests run as root, the lock itself is tried by another user of the system too.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.domain.errors import HeldError
from orchestrator.soak.locks import Claim, LockKey, holders, phones_held
from tests.chaos.killed_runs import WORKLOAD
from tests.end_to_end.fleet_process import (
    FLEET,
    WITHOUT_SWIFT,
    FinishedRun,
    environment,
    finish,
    processes_mentioning,
    read_json,
    served_phones,
    wait_for,
)

if TYPE_CHECKING:
    from pathlib import Path

NOBODY = 65534
KEY = LockKey("00008140-000A1B2C3D4E5F60", "bench-01")


class User:
    """Somebody with a home, a state folder and runs of his own."""

    def __init__(self, host: Path, name: str, usbmux: str) -> None:
        self.folder = host / name
        self.folder.mkdir()
        self.runs = self.folder / "runs"
        self._environment = environment(
            self.folder,
            PATH=WITHOUT_SWIFT,
            USBMUXD_SOCKET_ADDRESS=usbmux,
            FLEET_LOCK_DIR=str(host / "locks"),
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(FLEET), *words],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str) -> FinishedRun:
        return finish(self.start(*words), self.runs, limit_s=120)

    def soak(self, *words: str) -> subprocess.Popen[str]:
        return self.start("soak", "--output", str(self.runs), *words)


@pytest.mark.chaos
@pytest.mark.timeout(400)
def test_the_second_user_is_refused_by_name_or_waits_and_nothing_is_shared(tmp_path: Path) -> None:
    with served_phones(tmp_path, "--phones", "3") as farm:
        anna, ben = User(tmp_path, "anna", farm["usbmux"]), User(tmp_path, "ben", farm["usbmux"])
        first = anna.soak("--devices", "vp-01,vp-02", "--duration", "120s")
        wait_for(lambda: len(held(ben)) == 2, 60, "anna's locks, seen by ben")
        first_id = held(ben)[0]["run_id"]

        refused = ben.run("soak", "--output", str(ben.runs), "--devices", "vp-02,vp-03")
        assert refused.exit_code == 6
        assert "vp-02" in refused.stderr
        assert first_id in refused.stderr
        assert not ben.runs.exists() or not list(ben.runs.iterdir())
        assert {owner["alias"] for owner in held(ben)} == {"vp-01", "vp-02"}  # none of vp-03

        second = ben.soak("--devices", "vp-02,vp-03", "--wait", *WORKLOAD)
        assert first_id in line_of(second, "waiting: ")
        sessions = "latest/devices/*/attempts/1"
        wait_for(lambda: len(list(anna.runs.glob(sessions))) == 2, 120, "anna's sessions")
        first.terminate()
        ended = finish(first, anna.runs, limit_s=60)
        waited = finish(second, ben.runs, limit_s=200)
        assert ended.exit_code == 143
        assert waited.exit_code == 0, waited.stdout + waited.stderr
        assert {phone["alias"] for phone in waited.summary["phones"]} == {"vp-02", "vp-03"}
        assert names_in(ben.folder, first_id) == []
        assert names_in(anna.folder, read_json(waited.path / "run.json")["run_id"]) == []
        assert held(ben) == []
    wait_for(lambda: processes_mentioning(str(tmp_path)) == [], 30, "the end of every process")


def held(user: User) -> list[dict[str, Any]]:
    owners: list[dict[str, Any]] = json.loads(user.run("who", "--json").stdout)
    return owners


def line_of(process: subprocess.Popen[str], start: str) -> str:
    assert process.stderr is not None
    while line := process.stderr.readline():
        if line.startswith(start):
            return line
    raise AssertionError(f"no line begins with {start!r}")


def names_in(folder: Path, text: str) -> list[Path]:
    """Return the files of one user that mention something of the other's."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return [path for path in files if text.encode() in path.read_bytes() or text in str(path)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_of_the_system_is_refused_and_takes_the_lock_when_it_is_free(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "locks"
    folder.mkdir()
    folder.chmod(0o1777)
    for part in (tmp_path, *tmp_path.parents):
        if part.stat().st_uid == 0 and part.stat().st_mode & 0o001 == 0:
            part.chmod(part.stat().st_mode | 0o011)  # pytest's own folders, for this test's user
    with phones_held([KEY], Claim("run-of-root", 60.0), folder=folder):
        assert as_nobody(folder) == "bench-01 is held by run run-of-root of root"
    assert as_nobody(folder) == "held"
    assert holders(folder) == []


def as_nobody(folder: Path) -> str:
    """Take the lock in a process of another user, and return what came of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            try:
                with phones_held([KEY], Claim("run-of-nobody", 60.0), folder=folder):
                    os.write(writing, b"held")
            except HeldError as error:
                os.write(writing, str(error).partition(",")[0].encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        return pipe.read()
