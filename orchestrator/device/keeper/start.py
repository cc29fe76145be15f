"""Starts keepers: forked from one host that has the library imported, or each afresh on a Mac.

Importing the library costs about 0.7 s of CPU per process; a fork about 40 ms. A Mac's frameworks
do not survive a fork, so there every keeper is started afresh (not run on a Mac).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import anyio
import anyio.to_thread
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

import orchestrator
from orchestrator.device.keeper.lease import DEFAULT_LEASE_S
from orchestrator.domain.errors import DeviceError
from orchestrator.domain.outcome import Cause

if TYPE_CHECKING:
    from types import TracebackType

    from anyio.abc import Process

    from orchestrator.domain.deadline import Deadline

KEEPER_MODULE: Final = "orchestrator.device.pmd3.keeper"
HOST_MODULE: Final = "orchestrator.device.pmd3.keeper_host"
_STOP_LIMIT_S: Final = 5.0
_PACKAGE_ROOT: Final = Path(orchestrator.__file__).parents[1]


class KeeperOptions(msgspec.Struct, frozen=True):
    """What one keeper is started with."""

    udid: str
    alias: str
    address: str  # usbmux, `default` or host:port
    root: str  # folder that holds the keepers' folders
    lease_s: float = DEFAULT_LEASE_S
    tunneld: str | None = None  # host:port
    die_with_parent: bool = False


class Started(msgspec.Struct, frozen=True, tag="started"):
    """The keeper lives and listens."""

    pid: int


class NotStarted(msgspec.Struct, frozen=True, tag="not_started"):
    """The keeper could not be started."""

    reason: str
    held: bool = False  # because another keeper has the phone


class KeeperStarter:
    """Starts keepers and reaps them. One per orchestrator; leaving it leaves keepers on lease.

    Args:
        forking: Whether one host forks the keepers; else each is started afresh.
    """

    def __init__(self, *, forking: bool = sys.platform == "linux") -> None:
        self._forking = forking
        self._host: Process | None = None
        self._fresh: list[subprocess.Popen[bytes]] = []
        # Answers the host still owes: those to starts that were given up come before ours.
        self._owed = 0
        self._turn = anyio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self.aclose()

    async def aclose(self) -> None:
        """End the host. Keepers that die with their parent end now, the others by their lease."""
        host, self._host = self._host, None
        if host is not None:
            await _ended(host)
        for process in self._fresh:
            if process.stdin is not None:
                process.stdin.close()
            process.poll()  # reaps one that has ended

    async def start(self, options: KeeperOptions, *, deadline: Deadline) -> int:
        """Start one keeper that then listens at its place; return its pid.

        Raises:
            DeviceError: If another keeper has the phone, or the process does not come up.
        """
        async with self._turn:
            with anyio.move_on_after(deadline.remaining_s()):
                reply = await (self._fork(options) if self._forking else self._spawn(options))
                return _pid(options.alias, reply)
        raise _failure(options.alias, f"the keeper did not start within {deadline.limit_s:g} s")

    async def _fork(self, options: KeeperOptions) -> bytes:
        if self._host is None or self._host.returncode is not None:
            self._host = await _process(HOST_MODULE)
            self._host_lines = _lines(self._host)
            self._owed = 0
        if self._host.stdin is None:
            raise _failure(options.alias, "the keeper host has no stdin")
        try:
            await self._host.stdin.send(msgspec.json.encode(options) + b"\n")
            self._owed += 1
            while True:
                answer = await self._host_lines.receive_until(b"\n", 65536)
                self._owed -= 1
                if self._owed == 0:
                    return answer
        except (
            OSError,
            anyio.BrokenResourceError,
            anyio.IncompleteRead,
            anyio.EndOfStream,
        ) as error:
            words = await _last_words(self._host)
            raise _failure(options.alias, f"the keeper host ended: {words}") from error

    async def _spawn(self, options: KeeperOptions) -> bytes:
        process = _detachable(KEEPER_MODULE, *arguments(options))
        self._fresh.append(process)
        if process.stdout is None:
            raise _failure(options.alias, "the keeper has no stdout")
        try:
            reply = await anyio.to_thread.run_sync(process.stdout.readline, abandon_on_cancel=True)
            if not reply:  # it is ending, and must be reaped: nobody else waits for it
                await anyio.to_thread.run_sync(process.wait, abandon_on_cancel=True)
        except anyio.get_cancelled_exc_class():
            process.kill()
            process.wait()
            raise
        else:
            return reply
        finally:
            process.stdout.close()


def arguments(options: KeeperOptions) -> list[str]:
    """Return the keeper's command line."""
    words = ["--udid", options.udid, "--alias", options.alias, "--address", options.address]
    words += ["--root", options.root, "--lease-s", str(options.lease_s)]
    if options.tunneld is not None:
        words += ["--tunneld", options.tunneld]
    if options.die_with_parent:
        words += ["--die-with-parent", str(os.getpid())]
    return words


async def _process(module: str, *words: str) -> Process:
    return await anyio.open_process(
        _command(module, *words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,  # read only when it has ended; a healthy host writes nothing
        env=_environment(),
        start_new_session=True,  # a Ctrl-C is the orchestrator's to handle
    )


def _detachable(module: str, *words: str) -> subprocess.Popen[bytes]:
    # Not asyncio's process: that one kills its child when it is collected.
    return subprocess.Popen(
        _command(module, *words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
        start_new_session=True,
    )


def _command(module: str, *words: str) -> list[str]:
    return [sys.executable, "-m", module, *words]


def _environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(_PACKAGE_ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}


def _lines(process: Process) -> BufferedByteReceiveStream:
    if process.stdout is None:
        raise ValueError("the process was started with its stdout as a pipe")
    return BufferedByteReceiveStream(process.stdout)


async def _last_words(process: Process) -> str:
    """Return the last line that an ended process wrote to stderr."""
    text = ""
    if process.stderr is not None:
        with anyio.move_on_after(_STOP_LIMIT_S):
            async for chunk in process.stderr:
                text += chunk.decode(errors="replace")
    return next(reversed(text.strip().splitlines()), "it said nothing")


async def _ended(host: Process) -> None:
    if host.stdin is not None:
        await host.stdin.aclose()
    with anyio.move_on_after(_STOP_LIMIT_S):
        await host.wait()
    if host.returncode is None:
        host.kill()
    await host.wait()
    await host.aclose()


def _pid(alias: str, reply: bytes) -> int:
    try:
        answer = msgspec.json.decode(reply, type=Started | NotStarted)
    except msgspec.DecodeError as error:
        raise _failure(alias, "the keeper's first line cannot be read") from error
    if isinstance(answer, Started):
        return answer.pid
    remedy = "`fleet resume` adopts its session; left alone it ends with its lease"
    raise _failure(alias, answer.reason, remedy=remedy if answer.held else "")


def _failure(alias: str, facts: str, *, remedy: str = "") -> DeviceError:
    return DeviceError(alias, "host", "keeper", facts, cause=Cause.NOT_READY, remedy=remedy)
