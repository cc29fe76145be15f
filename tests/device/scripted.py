"""A phone from a script: `PhoneLink` and `DeveloperSession` without a phone, for unit tests.

Every call is recorded under its name; a failure put under that name is raised instead, and a gate
put there is waited for first. Files live in a dictionary by path, events in a queue that the test
feeds.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from orchestrator.device.events import AppExited, SessionEvent, SessionLost
from orchestrator.device.facts import (
    ClockReading,
    PhoneFacts,
    PulledReport,
    RemoteFile,
    VirtualFacts,
    report_key,
)
from orchestrator.device.link import PortRefusedError, RemotePathMissingError
from tests.device.phones import phone

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from anyio.abc import ByteStream

    from orchestrator.domain.deadline import Deadline
    from orchestrator.domain.errors import DeviceError
    from orchestrator.domain.phone import Phone

HEALTHY = PhoneFacts(
    name="bench-01",
    product_type="iPhone16,1",
    os="18.6",
    build="22G86",
    serial="F0000001",
    wifi="00:00:00:00:00:01",
    battery_percent=90,
    charging=True,
    free_disk_bytes=60 * 1024**3,
    developer_mode=True,
    ddi_mounted=True,
    locked=False,
    clock=ClockReading(0.0, 0.001),
    virtual=VirtualFacts(32),
)


@dataclass
class Script:
    """What calls do, by their name."""

    failures: dict[str, DeviceError] = field(default_factory=dict)
    gates: dict[str, anyio.Event] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    async def step(self, name: str) -> None:
        self.calls.append(name)
        if name in self.gates:
            await self.gates[name].wait()
        await anyio.lowlevel.checkpoint()
        if name in self.failures:
            raise self.failures[name]


class ScriptedSession:
    """A developer session whose events the test feeds with `tell`."""

    def __init__(self, script: Script | None = None, memory_bytes: int = 8_021_032_960) -> None:
        self.script = script or Script()
        self.by_tunneld = False
        self.boot: str | None = "boot-1"
        self.app_pid: int | None = None
        self.running: set[int] = set()
        self.launches: list[tuple[str, dict[str, str], list[str]]] = []
        self._memory_bytes = memory_bytes
        self._send, self._receive = anyio.create_memory_object_stream[SessionEvent](math.inf)

    def tell(self, event: SessionEvent) -> None:
        if isinstance(event, AppExited):
            self.running.discard(event.pid)
        self._send.send_nowait(event)

    async def launch(
        self,
        bundle_id: str,
        environment: Mapping[str, str],
        arguments: Sequence[str] = (),
        *,
        deadline: Deadline,
    ) -> int:
        await self.script.step("launch")
        self.launches.append((bundle_id, dict(environment), list(arguments)))
        pid = 100 + len(self.launches)
        self.running.add(pid)
        return pid

    async def kill(self, pid: int, *, deadline: Deadline) -> None:
        await self.script.step("kill")
        if pid in self.running:
            self.tell(AppExited(pid, None, 9))

    async def is_running(self, pid: int, *, deadline: Deadline) -> bool:
        await self.script.step("is_running")
        return pid in self.running

    async def physical_memory_bytes(self, *, deadline: Deadline) -> int:
        await self.script.step("physical_memory_bytes")
        return self._memory_bytes

    async def boot_session(self, *, deadline: Deadline) -> str | None:
        await self.script.step("boot_session")
        return self.boot

    async def observe(self, pid: int, interval_ms: int, *, deadline: Deadline) -> None:
        await self.script.step("observe")

    async def events(self) -> AsyncIterator[SessionEvent]:
        async for event in self._receive:
            yield event
            if isinstance(event, SessionLost):
                return

    async def detach(self) -> None:
        await self.script.step("detach")

    async def aclose(self) -> None:
        self.script.calls.append("aclose")
        self._send.close()
        self._receive.close()


@dataclass
class ScriptedLink:
    """A phone: its facts, the files in its one app's container, its reports."""

    script: Script = field(default_factory=Script)
    session: ScriptedSession = field(default_factory=ScriptedSession)
    phone: Phone = field(default_factory=phone)
    health: PhoneFacts = HEALTHY
    files: dict[str, bytes] = field(default_factory=dict)
    reports: dict[str, bytes] = field(default_factory=dict)
    on_connect: Callable[[], Awaitable[ByteStream]] | None = None  # None: the port is refused
    keeper_lives: bool = False
    pushed_bytes: int = 0

    async def facts(self, *, deadline: Deadline) -> PhoneFacts:
        await self.script.step("facts")
        return self.health

    async def mount_image(self, *, deadline: Deadline) -> None:
        await self.script.step("mount_image")

    async def install(
        self,
        ipa: Path,
        bundle_id: str,
        *,
        deadline: Deadline,
        uninstall_first: bool = False,
        on_progress: Callable[[str, float], None] | None = None,
    ) -> None:
        await self.script.step("install")
        if uninstall_first:
            self.files.clear()

    async def push(
        self,
        bundle_id: str,
        source: bytes | Path,
        remote_path: str,
        *,
        deadline: Deadline,
        on_bytes: Callable[[int], None] | None = None,
        from_byte: int = 0,
    ) -> None:
        await self.script.step("push")
        content = source if isinstance(source, bytes) else await anyio.Path(source).read_bytes()
        if on_bytes is not None and not isinstance(source, bytes):
            on_bytes(len(content) - from_byte)
        there = self.files.get(remote_path, b"") if from_byte else b""
        self.files[remote_path] = there + content[from_byte:]
        self.pushed_bytes += len(content) - from_byte

    async def digest(self, bundle_id: str, remote_path: str, *, deadline: Deadline) -> str:
        await self.script.step("digest")
        if remote_path not in self.files:
            raise RemotePathMissingError(self.phone.alias, "digest", remote_path)
        return hashlib.sha256(self.files[remote_path]).hexdigest()

    async def list(
        self, bundle_id: str, remote_dir: str, *, deadline: Deadline
    ) -> Sequence[RemoteFile]:
        await self.script.step("list")
        below = [path for path in self.files if path.startswith(f"{remote_dir}/")]
        if not below:
            raise RemotePathMissingError(self.phone.alias, "list", remote_dir)
        return [RemoteFile(path, len(self.files[path]), 0.0, False) for path in below]

    async def tree(
        self, bundle_id: str, remote_dir: str, *, deadline: Deadline
    ) -> Sequence[RemoteFile]:
        await self.script.step("tree")
        below = [path for path in self.files if path.startswith(f"{remote_dir}/")]
        if not below:
            raise RemotePathMissingError(self.phone.alias, "list", remote_dir)
        return [RemoteFile(path, len(self.files[path]), 0.0, False) for path in below]

    async def pull(
        self, bundle_id: str, remote_path: str, local: Path, *, deadline: Deadline
    ) -> None:
        await self.script.step("pull")
        if remote_path not in self.files:
            raise RemotePathMissingError(self.phone.alias, "pull", remote_path)
        await anyio.Path(local.parent).mkdir(parents=True, exist_ok=True)
        await anyio.Path(local).write_bytes(self.files[remote_path])

    async def remove(self, bundle_id: str, remote_path: str, *, deadline: Deadline) -> None:
        await self.script.step("remove")
        self.files.pop(remote_path, None)

    async def restart(self, *, deadline: Deadline) -> None:
        await self.script.step("restart")

    async def connect(self, port: int, *, deadline: Deadline) -> ByteStream:
        await self.script.step("connect")
        if self.on_connect is None:
            raise PortRefusedError(self.phone.alias, port)
        return await self.on_connect()

    async def flush_reports(self, *, deadline: Deadline) -> None:
        await self.script.step("flush_reports")

    async def list_reports(self, *, deadline: Deadline) -> set[str]:
        await self.script.step("list_reports")
        return {report_key(path, len(content)) for path, content in self.reports.items()}

    async def pull_reports(
        self, into: Path, *, known: set[str], deadline: Deadline
    ) -> Sequence[PulledReport]:
        await self.script.step("pull_reports")
        pulled: list[PulledReport] = []
        for path, content in self.reports.items():
            if report_key(path, len(content)) not in known:
                local = into / path.lstrip("/")
                local.parent.mkdir(parents=True, exist_ok=True)
                local.write_bytes(content)
                pulled.append(PulledReport(path, str(local), len(content), 0.0))
        return pulled

    async def developer(self, *, deadline: Deadline) -> ScriptedSession:
        await self.script.step("developer")
        return self.session

    async def adopt(self, *, deadline: Deadline) -> ScriptedSession | None:
        await self.script.step("adopt")
        return self.session if self.keeper_lives else None
