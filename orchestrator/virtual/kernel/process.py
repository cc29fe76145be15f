"""One app as a child process: its conditions channel, its output, its end.

Everything here runs in the event loop's thread. The child is started from that thread and must
be: on Linux an app asks for PR_SET_PDEATHSIG, which fires when the *thread* that started it ends,
so a start from a worker thread would kill the app as soon as that worker is done. The child sets
it by itself, because `preexec_fn` is unsafe beside threads.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol, cast

from orchestrator.virtual.kernel.conditions import Condition, ForegroundChange, condition_line
from orchestrator.virtual.kernel.counter import counter_of
from orchestrator.virtual.kernel.errors import LaunchRefusedError
from orchestrator.virtual.kernel.output import LineSplitter
from orchestrator.virtual.kernel.values import (
    AppChange,
    InstalledApp,
    ProcessInfo,
    ProcessListener,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from orchestrator.virtual.kernel.causes import Termination
    from orchestrator.virtual.kernel.coroner import Kill
    from orchestrator.virtual.kernel.counter import Counter
    from orchestrator.virtual.kernel.values import AppChangeKind

# A grandchild may hold stdout open after the app is gone: the end is then announced without it.
DRAIN_LIMIT_S: Final = 0.5

BACKLOG_LINES: Final = 256  # kept until the first listener comes, the oldest are dropped
CONDITIONS_LIMIT_BYTES: Final = 256 * 1024  # unread by the app; more are dropped and logged


class ProcessOwner(Protocol):
    """The kernel, as its processes see it."""

    def started(self, process: AppProcess) -> None:
        """Take a process whose pid is known from now on."""

    def wrote(self, process: AppProcess, line: str) -> None:
        """Take one line of output."""

    def died(self, process: AppProcess) -> None:
        """Take a process that no longer runs; its output may still be on the way."""

    def ended(self, process: AppProcess) -> None:
        """Take a process that is gone with all of its output read."""


class AppProcess(asyncio.SubprocessProtocol):
    """A running app, and what is left of it after its end. Made by `spawn` alone."""

    def __init__(
        self,
        app: InstalledApp,
        port: int,
        socket: Path,
        conditions: asyncio.WriteTransport,
        owner: ProcessOwner,
    ) -> None:
        self.app, self.port, self.socket = app, port, socket
        self.pid = 0
        self.started_s = time.time()
        self.frontmost = True
        self.stopped = False
        self.ended = asyncio.Event()
        self.exit_code: int | None = None
        self.signal: int | None = None
        self.last_line = ""
        self.kill: Kill | None = None  # by the kernel, for memory
        self.termination: Termination | None = None  # by iOS, for another reason
        self._conditions, self._owner = conditions, owner
        self._condition_count = 0
        self._listeners: list[ProcessListener] = []
        self._backlog: deque[str] | None = deque(maxlen=BACKLOG_LINES)
        self._lines = LineSplitter()
        self._output_open = True
        self._pidfd: int | None = None
        self.counter: Counter | None = None

    @property
    def info(self) -> ProcessInfo:
        """The process as others see it."""
        app = self.app
        return ProcessInfo(self.pid, app.name, app.bundle_id, app.executable, self.started_s)

    def change(self, kind: AppChangeKind) -> AppChange:
        """Return what has just become of the app, for those who are told."""
        app, executable = self.app, str(self.app.executable)
        return AppChange(
            kind, self.pid, app.name, app.bundle_id, executable, self.exit_code, self.signal
        )

    def send_signal(self, number: int) -> None:
        """Send a signal; a process that is gone is left alone.

        Thread-safe: the memory sampler kills from its own thread. A pidfd never hits another
        process that got the same pid; macOS has none (branch not run).
        """
        try:
            if self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd, number)
            else:
                os.kill(self.pid, number)
        except ProcessLookupError:
            return
        if number in {signal.SIGSTOP, signal.SIGCONT}:
            self.stopped = number == signal.SIGSTOP

    def tell(self, condition: Condition) -> bool:
        """Write one numbered line to the conditions channel; False if the app cannot take it."""
        if isinstance(condition, ForegroundChange):
            self.frontmost = condition.value
        self._condition_count += 1
        unread_bytes = self._conditions.get_write_buffer_size()
        if self._conditions.is_closing() or unread_bytes > CONDITIONS_LIMIT_BYTES:
            return False
        self._conditions.write(condition_line(self._condition_count, condition))
        return True

    def listen(self, listener: ProcessListener) -> None:
        """Add a listener; the first one also gets what was written before it came."""
        backlog, self._backlog = self._backlog or (), None
        for line in backlog:
            listener.output(self.pid, line)
        if self.ended.is_set():
            listener.exited(self.pid, self.exit_code, self.signal)
        else:
            self._listeners.append(listener)

    def unlisten(self, listener: ProcessListener) -> None:
        """Remove a listener; one that is not there is ignored."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport: the process runs."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self.pid = self._transport.get_pid()
        self._pidfd = _open_pidfd(self.pid)
        self.counter = counter_of(self.pid)
        self._owner.started(self)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Deliver the lines that a piece of output completes."""
        self._deliver(self._lines.feed(data))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Take the end of the output."""
        self._output_open = False
        self._deliver(self._lines.finish())
        if self.exit_code is not None or self.signal is not None:
            self._finish()

    def process_exited(self) -> None:
        """Take the end of the process; what it wrote last is read first."""
        status = cast("int", self._transport.get_returncode())
        self.exit_code, self.signal = (status, None) if status >= 0 else (None, -status)
        self._owner.died(self)
        if self._output_open:
            asyncio.get_running_loop().call_later(DRAIN_LIMIT_S, self._finish)
        else:
            self._finish()

    def _deliver(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.last_line = line or self.last_line
            self._owner.wrote(self, line)
            if self._backlog is not None:
                self._backlog.append(line)
            for listener in tuple(self._listeners):
                listener.output(self.pid, line)

    def _finish(self) -> None:
        if self.ended.is_set():
            return
        self.ended.set()
        self._release()
        if not self._conditions.is_closing():  # the app's end may have closed it already
            self._conditions.abort()
        self._transport.close()
        for listener in tuple(self._listeners):
            listener.exited(self.pid, self.exit_code, self.signal)
        self._owner.ended(self)

    def _release(self) -> None:
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        if self.counter is not None:
            self.counter.close()
            self.counter = None


async def spawn(
    app: InstalledApp,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    port: int,
    socket: Path,
    owner: ProcessOwner,
) -> AppProcess:
    """Start an app in its sandbox.

    Raises:
        LaunchRefusedError: If the host cannot execute it.
    """
    loop = asyncio.get_running_loop()
    read_end, write_end = os.pipe()  # neither is inherited, so no sibling keeps the channel open
    writer = os.fdopen(write_end, "wb", buffering=0)
    conditions, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, writer)
    process = AppProcess(app, port, socket, conditions, owner)
    try:
        # A session of its own: Ctrl-C at the terminal is for the host, never for the app.
        await loop.subprocess_exec(
            lambda: process,
            app.executable,
            *arguments,
            stdin=read_end,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=app.sandbox,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        conditions.abort()
        raise LaunchRefusedError(app.bundle_id, f"{app.executable}: {error}") from error
    except BaseException:
        conditions.abort()
        raise
    finally:
        os.close(read_end)
    return process


def _open_pidfd(pid: int) -> int | None:
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None  # an old kernel, or the process is gone already: then `os.kill` finds nothing
