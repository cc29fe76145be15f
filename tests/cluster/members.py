"""A cluster on loopback: scheduler, agents and their served phones, each a process of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.end_to_end.fleet_process import (
    FLEET,
    ROOT,
    WITHOUT_SWIFT,
    FinishedRun,
    environment,
    run_fleet,
    served_phones,
    start_fleet,
    wait_for,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

needs_dask = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None,
    reason="the extra `cluster` is not installed: pip install -e '.[cluster]'",
)
START_LIMIT_S = 90.0  # of a member, on a machine that does much else
RUN_LIMIT_S = 240.0


# As in tests/chaos/killed_runs.py: only the kernel's warning depends on time.
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(slots=True)
class Member:
    """A process of the cluster that may be killed and started again."""

    folder: Path
    words: tuple[str, ...]
    environment: dict[str, str]
    ready: str  # what it prints once it serves
    process: subprocess.Popen[str] | None = None
    starts: int = 0

    @property
    def log(self) -> Path:
        return self.folder / f"{self.starts}.log"

    def start(self, *, wait: bool = True) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.starts += 1
        # To a file: nobody reads a pipe while a test waits for something else.
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [str(FLEET), *self.words],
                cwd=ROOT,
                env=environment(self.folder, **self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        def is_ready() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, self.log.read_text()
            return self.ready in self.log.read_text()

        wait_for(is_ready, START_LIMIT_S, f"{self.ready!r} of {self.folder.name}")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def end(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        if self.process.poll() is None:
            self.kill()
            raise AssertionError(f"{self.folder.name} did not end:\n{self.log.read_text()}")


@dataclass(slots=True)
class Cluster:
    """What a test starts and breaks."""

    folder: Path
    url: str
    scheduler: Member
    agents: dict[str, Member] = field(default_factory=dict)
    farms: dict[str, dict[str, Any]] = field(default_factory=dict)

    def fleet(self, *words: str, limit_s: float = RUN_LIMIT_S) -> FinishedRun:
        """Run a command of the coordinator's host."""
        home = self.folder / "coordinator"
        home.mkdir(exist_ok=True)
        return run_fleet(home, *words, "--cluster", self.url, limit_s=limit_s, PATH=WITHOUT_SWIFT)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a soak and return at once."""
        home = self.folder / "coordinator"
        home.mkdir(exist_ok=True)
        output = str(home / "runs")
        return start_fleet(
            home, "soak", *words, "--cluster", self.url, "--output", output, PATH=WITHOUT_SWIFT
        )

    @property
    def output(self) -> Path:
        return self.folder / "coordinator" / "runs"

    def run_of(self, name: str) -> Path:
        """The durable run directory at an agent."""
        (run,) = (self.agents[name].folder / "agent" / "runs").glob("2*")
        return run

    def child_of(self, name: str) -> int:
        """Pid of the process that carries the slice of an agent out."""
        (lock,) = (self.agents[name].folder / "agent" / "slices").glob("*/process.lock")
        pid: int = json.loads(lock.read_bytes())["pid"]
        return pid

    def wait_for_records(self, name: str, count: int) -> None:
        """Wait until every phone of an agent has sent some records."""

        def grown() -> bool:
            streams = list(
                (self.agents[name].folder / "agent" / "runs").glob(
                    "2*/devices/*/attempts/1/launches/1/stream.ndjson"
                )
            )
            wanted = len(self.farms[name]["phones"])
            return len(streams) == wanted and all(
                stream.read_bytes().count(b"\n") >= count for stream in streams
            )

        wait_for(grown, START_LIMIT_S, f"{count} records of every phone of {name}")


@contextmanager
def cluster(
    folder: Path, hosts: int, phones: int, *, agent_words: tuple[str, ...] = (), url: str = ""
) -> Iterator[Cluster]:
    """Run a scheduler and agents `mini-1`, ... with so many phones each."""
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    scheduler = Member(
        folder / "scheduler", ("cluster", "scheduler", "--listen", address), {}, "scheduler at"
    )
    made = Cluster(folder, url or address, scheduler)
    with ExitStack() as stack:
        for number in range(1, hosts + 1):
            name = f"mini-{number}"
            (folder / name).mkdir()
            made.farms[name] = stack.enter_context(
                served_phones(folder / name, "--phones", str(phones), "--seed", str(number))
            )
            made.agents[name] = agent_member(made, name, address, agent_words)
        for member in (scheduler, *made.agents.values()):
            stack.callback(member.end)
            member.start(wait=False)
        for member in (scheduler, *made.agents.values()):
            member.wait_ready()
        yield made


def agent_member(made: Cluster, name: str, scheduler: str, words: tuple[str, ...] = ()) -> Member:
    folder = made.folder / name
    return Member(
        folder,
        (
            *("agent", "--scheduler", scheduler, "--name", name),
            *("--listen", f"tcp://127.0.0.1:{free_port()}"),
            *("--folder", str(folder / "agent"), *words),
        ),
        {"USBMUXD_SOCKET_ADDRESS": made.farms[name]["usbmux"], "PATH": WITHOUT_SWIFT},
        f"agent {name} at",
    )


def kill_process(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
