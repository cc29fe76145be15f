"""An app from a script behind a scripted phone: answers commands, sends records, ends as told."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from orchestrator.device.events import AppExited

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.device.scripted import ScriptedLink

LAUNCH = "8d5d9c1e-2f0b-4c8f-9a57-0f1c2b3d4e5f"
PID = 101  # of the first launch on a scripted phone


def record(seq: int, kind: str, **fields: object) -> bytes:
    line = {"launch": LAUNCH, "seq": seq, "t_ns": seq * 1000, "kind": kind, **fields}
    return json.dumps(line).encode() + b"\n"


@dataclass
class Pipe:
    """The client's end of one connection."""

    app: ScriptedApp
    _inbox: anyio.Event = field(default_factory=anyio.Event)
    _waiting: bytearray = field(default_factory=bytearray)
    _ended: bool = False

    def put(self, line: bytes) -> None:
        self._waiting += line
        self._inbox.set()

    def end(self) -> None:
        self._ended = True
        self._inbox.set()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        while not self._waiting:
            if self._ended:
                raise anyio.EndOfStream
            self._inbox = anyio.Event()
            await self._inbox.wait()
        taken = bytes(self._waiting[:max_bytes])
        del self._waiting[: len(taken)]
        return taken

    async def send(self, item: bytes) -> None:
        for line in item.splitlines():
            self.app.obey(self, json.loads(line))

    async def send_eof(self) -> None:
        self.end()

    async def aclose(self) -> None:
        self.end()

    @property
    def extra_attributes(self) -> dict[Any, Callable[[], Any]]:
        return {}

    def extra(self, attribute: Any, default: Any = None) -> Any:  # noqa: ANN401 - anyio's shape
        return default


@dataclass
class ScriptedApp:
    """Sends `lines` after `start`, then does what `then` says."""

    link: ScriptedLink
    lines: list[bytes] = field(default_factory=list)
    then: str = "bye"  # "bye", "crash", "hang up", "silence"
    refuses: str | None = None
    launch: str = LAUNCH
    commands: list[str] = field(default_factory=list)
    resumed_from: list[int] = field(default_factory=list)
    started: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        self.link.on_connect = self._connect

    async def _connect(self) -> Any:  # noqa: ANN401 - stands for a byte stream
        return Pipe(self)

    def obey(self, pipe: Pipe, command: dict[str, Any]) -> None:
        name = command["command"]
        self.commands.append(name)
        reply = {"reply": name, "id": command["id"], "ok": True}
        if name == "hello":
            reply |= {
                "protocol": 1, "app": "scripted", "pid": PID, "launch": self.launch,
                "started": self.started.is_set(), "seq": 0,
            }  # fmt: skip
        if name == self.refuses:
            reply |= {"ok": False, "error": "scenario", "message": "no such thing"}
        pipe.put(json.dumps(reply).encode() + b"\n")
        if reply["ok"]:
            getattr(self, f"_on_{name}", lambda *_: None)(pipe, command)

    def _on_start(self, pipe: Pipe, _command: dict[str, Any]) -> None:
        self.started.set()
        for line in self.lines:
            pipe.put(line)
        self._end(pipe, self.then)

    def _on_resume(self, pipe: Pipe, command: dict[str, Any]) -> None:
        self.resumed_from.append(command["seq"])
        for line in self.lines[command["seq"] :]:
            pipe.put(line)
        self._end(pipe, "bye")

    def _on_stop(self, pipe: Pipe, _command: dict[str, Any]) -> None:
        self._end(pipe, "bye")

    def _end(self, pipe: Pipe, how: str) -> None:
        if how == "bye":
            pipe.put(record(len(self.lines) + 1, "bye"))
            self.link.session.tell(AppExited(PID, 0, None))
        if how == "crash":
            self.link.session.tell(AppExited(PID, None, 6))
        if how != "silence":
            pipe.end()
