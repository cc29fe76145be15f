"""A session without a phone, for tests of the keeper's server and client."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orchestrator.device.events import AppExited, AppOutput, SessionEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import anyio

    from orchestrator.domain.deadline import Deadline
    from orchestrator.domain.errors import DeviceError


@dataclass
class ScriptedKept:
    """Launches pid 100, 101, ...; `gates` hold a call until they are set."""

    failures: dict[str, DeviceError] = field(default_factory=dict)
    gates: dict[str, anyio.Event] = field(default_factory=dict)
    emit: Callable[[SessionEvent], None] = field(default=lambda _event: None)
    calls: list[str] = field(default_factory=list)
    running: set[int] = field(default_factory=set)
    exits_before_the_launch_answers: bool = False
    output_after_launch: str | None = None
    by_tunneld: bool = False

    async def open(self, *, deadline: Deadline) -> bool:
        await self._call("open")
        return self.by_tunneld

    async def launch(
        self,
        bundle_id: str,
        environment: Mapping[str, str],
        arguments: Sequence[str],
        *,
        deadline: Deadline,
    ) -> int:
        await self._call(f"launch {bundle_id} {dict(environment)} {list(arguments)}")
        pid = 100 + len(self.running)
        self.running.add(pid)
        if self.exits_before_the_launch_answers:
            self.emit(AppExited(pid, 1, None))
        if self.output_after_launch is not None:
            self.emit(AppOutput(pid, self.output_after_launch))
        return pid

    async def kill(self, pid: int, *, deadline: Deadline) -> None:
        await self._call(f"kill {pid}")
        if pid in self.running:
            self.running.discard(pid)
            self.emit(AppExited(pid, None, 9))

    async def is_running(self, pid: int, *, deadline: Deadline) -> bool:
        await self._call(f"is_running {pid}")
        return pid in self.running

    async def physical_memory_bytes(self, *, deadline: Deadline) -> int:
        await self._call("physical_memory_bytes")
        return 8_021_032_960

    def boot_session(self) -> str | None:
        return "8d6e2a51-0000-4000-8000-000000000001"

    async def observe(self, pid: int, interval_ms: int, *, deadline: Deadline) -> None:
        await self._call(f"observe {pid} {interval_ms}")

    async def aclose(self, *, deadline: Deadline) -> None:
        await self._call("aclose")

    async def _call(self, call: str) -> None:
        self.calls.append(call)
        name = call.split(maxsplit=1)[0]
        if name in self.gates:
            await self.gates[name].wait()
        if name in self.failures:
            raise self.failures[name]
