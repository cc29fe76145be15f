"""A virtual phone's kernel with small apps written in Python, run as real child processes."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from orchestrator.domain.iphone import by_name
from orchestrator.virtual.kernel import InstalledApp, Kernel, KernelFacts, LogLine, MemoryEvent
from orchestrator.virtual.kernel.reports import ReportPolicy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

WAIT_LIMIT_S = 10.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path: sockets live in it."""
    path = Path(tempfile.mkdtemp(prefix="vk"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def facts(folder: Path) -> KernelFacts:
    model = by_name("iPhone 15")
    assert model is not None
    crashes = folder / "crashes"
    crashes.mkdir()
    return KernelFacts(
        model=model,
        udid="00008120-000A11112222333A",
        os="18.5",
        build="22F76",
        memory_scale=32,
        port_folder=folder,
        crash_folder=crashes,
        entitled=False,
        boot_time_s=time.time() - 100,
    )


def install(folder: Path, source: str, name: str = "SoakHarness") -> InstalledApp:
    """Return an app that runs `source` in Python."""
    sandbox = folder / f"{name[:20]}.container"
    (sandbox / "tmp").mkdir(parents=True)
    executable = folder / f"{name[:20]}.py"
    executable.write_text(f"#!{sys.executable}\n{source}")
    executable.chmod(0o755)
    return InstalledApp(f"com.example.{name.lower()}", name, executable, sandbox, "1.0", "7")


@dataclass
class Watcher:
    """A listener that can be waited for."""

    lines: list[str] = field(default_factory=list)
    end: tuple[int | None, int | None] | None = None
    changed: anyio.Event = field(default_factory=anyio.Event)

    def output(self, pid: int, line: str) -> None:
        self.lines.append(line)
        self._wake()

    def exited(self, pid: int, exit_code: int | None, signal: int | None) -> None:
        assert self.end is None, "the end came twice"
        self.end = (exit_code, signal)
        self._wake()

    async def line(self, start: str) -> str:
        """Wait for a line that begins with `start`."""
        with anyio.fail_after(WAIT_LIMIT_S):
            while True:
                for line in self.lines:
                    if line.startswith(start):
                        return line
                await self.changed.wait()

    async def ended(self) -> tuple[int | None, int | None]:
        """Wait for the end: exit code, signal."""
        with anyio.fail_after(WAIT_LIMIT_S):
            while self.end is None:
                await self.changed.wait()
        return self.end

    def _wake(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()


@dataclass
class Phone:
    """A kernel with everything it has said."""

    facts: KernelFacts
    kernel: Kernel
    folder: Path
    log: list[LogLine]
    events: list[MemoryEvent]

    async def run(
        self, source: str, environment: Mapping[str, str] | None = None, name: str = "SoakHarness"
    ) -> tuple[int, Watcher]:
        app = install(self.folder, source, name)
        pid = await self.kernel.launch(app, environment or {}, [], kill_existing=False)
        watcher = Watcher()
        self.kernel.listen(pid, watcher)
        return pid, watcher

    def reports(self) -> list[Path]:
        return sorted(self.facts.crash_folder.iterdir())

    def log_of(self, process: str) -> list[str]:
        return [line.text for line in self.log if line.process == process]


@pytest.fixture
async def phone(facts: KernelFacts, folder: Path) -> AsyncIterator[Phone]:
    log: list[LogLine] = []
    events: list[MemoryEvent] = []
    kernel = Kernel(
        facts, log=log.append, record=events.append, policy=ReportPolicy(limit_per_day=1)
    )
    yield Phone(facts, kernel, folder, log, events)
    await kernel.shut_down()
