"""The kernel model of one virtual iPhone: processes, signals, conditions."""

from __future__ import annotations

import asyncio
import os
import signal as signals
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.kernel.clock import PhoneClock
from orchestrator.virtual.kernel.conditions import Condition, ForegroundChange, MemoryWarning
from orchestrator.virtual.kernel.coroner import Coroner, Kill, app_row
from orchestrator.virtual.kernel.counter import refuse_huge_pages
from orchestrator.virtual.kernel.environment import child_environment, port_of, socket_of
from orchestrator.virtual.kernel.errors import (
    BadSignalError,
    KernelError,
    LaunchRefusedError,
    NoSuchProcessError,
)
from orchestrator.virtual.kernel.jetsam import KillReason, Row, system_row
from orchestrator.virtual.kernel.memory import MemorySampler, Reading, SamplerLag
from orchestrator.virtual.kernel.process import AppProcess, spawn
from orchestrator.virtual.kernel.reports import ReportPolicy
from orchestrator.virtual.kernel.residents import SystemProcesses
from orchestrator.virtual.kernel.suspension import Suspensions
from orchestrator.virtual.kernel.values import LogLine, MemoryEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from orchestrator.virtual.kernel.causes import Termination
    from orchestrator.virtual.kernel.residents import SystemProcess
    from orchestrator.virtual.kernel.values import (
        AppChange,
        AppChangeKind,
        InstalledApp,
        KernelFacts,
        ProcessInfo,
        ProcessListener,
    )

KILL_LIMIT_S: Final = 5.0  # from SIGKILL to reaped; the host needs milliseconds
SUSPEND_AFTER_S: Final = 5.0  # from leaving the foreground
REMEMBERED_DEAD: Final = 16  # so that a listener which comes too late still learns the end


class Kernel:
    """Runs the apps of one virtual phone.

    Make it and call it in one event loop, in a thread that lives as long as the phone. Callbacks
    come in that loop. Ends with `shut_down`.
    """

    def __init__(
        self,
        facts: KernelFacts,
        *,
        log: Callable[[LogLine], None],
        record: Callable[[MemoryEvent], None] | None = None,
        notify: Callable[[AppChange], None] | None = None,
        policy: ReportPolicy | None = None,
        clock: PhoneClock | None = None,
    ) -> None:
        """Make the kernel of a phone that has just booted.

        Args:
            facts: The phone.
            log: Takes the lines of os_trace and syslog.
            record: Takes what the memory sampler did, for the phone's event log.
            notify: Takes what becomes of apps.
            policy: How reports are written: whole, at once and within a quota without one.
            clock: The phone's; the host's without one.
        """
        self._facts, self._log, self._record, self._notify = facts, log, record, notify
        self._sampler = MemorySampler(asyncio.get_running_loop())
        self._coroner = Coroner(
            facts, log, policy or ReportPolicy(), clock or PhoneClock(), self._rows
        )
        self.reports = self._coroner.reports
        self._running: dict[int, AppProcess] = {}
        self._suspensions = Suspensions()
        self.system = SystemProcesses(facts.boot_time_s, self._running.__contains__)
        self._dead: deque[AppProcess] = deque(maxlen=REMEMBERED_DEAD)
        self._launching = asyncio.Lock()
        self._is_down = False
        refuse_huge_pages()

    async def launch(
        self,
        app: InstalledApp,
        environment: Mapping[str, str],
        arguments: Sequence[str],
        *,
        kill_existing: bool,
    ) -> int:
        """Start an app and return its pid.

        An app runs once at a time, as on a phone: without `kill_existing` a running one stays and
        its pid is returned.

        Raises:
            LaunchRefusedError: If the app cannot be started; it names the app and the reason.
        """
        async with self._launching:  # two at once could both find the port free
            running = [p for p in self._running.values() if p.app.bundle_id == app.bundle_id]
            if running and not kill_existing:
                return running[0].pid
            await self._kill(running)
            process = await self._start(app, environment, arguments)
        return process.pid

    def send_signal(self, pid: int, signal: int) -> None:
        """Send a signal, by the host's number, to a running app.

        Raises:
            NoSuchProcessError: If no running app has the pid.
            BadSignalError: If the host has no such signal.
        """
        process = self._process(pid)
        if signal not in signals.valid_signals():
            raise BadSignalError(signal)
        process.send_signal(signal)

    def processes(self) -> list[ProcessInfo]:
        """Return the running apps in the order of their start."""
        return [process.info for process in self._running.values()]

    def footprint_bytes(self, pid: int) -> int | None:
        """Return the footprint in phone bytes, None for a pid that does not run."""
        process = self._running.get(pid)
        footprint = process.counter.footprint_bytes() if process and process.counter else None
        return None if footprint is None else footprint * self._facts.memory_scale

    def cpu_time_s(self, pid: int) -> float | None:
        """Return the CPU time since the launch in seconds, None for a pid that does not run."""
        process = self._running.get(pid)
        return process.counter.cpu_time_s() if process and process.counter else None

    def listen(self, pid: int, listener: ProcessListener) -> None:
        """Tell a listener of output and end of an app.

        The first listener also gets the lines that came before it; for an app that has just ended
        it gets the end at once.

        Raises:
            NoSuchProcessError: If the pid is unknown.
        """
        for process in (*self._running.values(), *reversed(self._dead)):
            if process.pid == pid:
                process.listen(listener)
                return
        raise NoSuchProcessError(pid)

    def unlisten(self, pid: int, listener: ProcessListener) -> None:
        """Tell a listener nothing more; unknown ones are ignored."""
        if process := self._running.get(pid):
            process.unlisten(listener)

    def app_socket(self, port: int) -> Path | None:
        """Return the socket on which a running app listens for a device port, if there is one."""
        for process in self._running.values():
            if process.port == port and process.socket.is_socket():
                return process.socket
        return None

    def send_condition(self, pid: int, condition: Condition) -> None:
        """Tell an app a condition of the phone.

        Raises:
            NoSuchProcessError: If no running app has the pid.
        """
        self._tell(self._process(pid), condition)

    def warn(self, pid: int) -> None:
        """Warn an app of low memory, whatever it uses.

        Raises:
            NoSuchProcessError: If no running app has the pid.
        """
        process = self._process(pid)
        self._tell(process, MemoryWarning())
        self._tell_of("memory_warning", process)

    def to_background(self, pid: int, suspend_after_s: float = SUSPEND_AFTER_S) -> None:
        """Take an app off the screen; it is suspended a little later.

        Raises:
            NoSuchProcessError: If no running app has the pid.
        """
        process = self._process(pid)
        self._tell(process, ForegroundChange(value=False))
        self._tell_of("background", process)
        self._suspensions.plan(pid, suspend_after_s, lambda: self._suspend(process))

    def to_foreground(self, pid: int) -> None:
        """Put an app on the screen; a suspended one goes on.

        Raises:
            NoSuchProcessError: If no running app has the pid.
        """
        process = self._process(pid)
        self._suspensions.forget(pid)
        process.send_signal(signals.SIGCONT)
        self._tell(process, ForegroundChange(value=True))
        self._tell_of("foreground", process)

    def terminate(self, pid: int, termination: Termination) -> None:
        """Kill an app for a reason that a crash report states.

        Raises:
            NoSuchProcessError: If no running app has the pid.
        """
        process = self._process(pid)
        process.termination = termination
        process.send_signal(signals.SIGKILL)

    def relieve(self, *, apps: bool, frontmost: bool) -> str | None:
        """Free memory for the phone as a whole: idle daemons, then apps, the frontmost last.

        Args:
            apps: Whether apps in the background go too.
            frontmost: Whether those on the screen go too.

        Returns:
            The file name of the report, if no app is in it: an app's is written when it has ended.
        """
        idle = [process for process in self.system.running() if process.is_idle]
        for process in idle:
            self.system.end(process.pid)
        victims = [p for p in self._running.values() if frontmost or (apps and not p.frontmost)]
        if not victims:
            return self._coroner.reclaimed(idle) if idle else None
        for victim in sorted(victims, key=lambda p: p.frontmost):
            self.reclaim(victim.pid, tuple(idle))
            idle = []
        return None

    def reclaim(self, pid: int, others: tuple[SystemProcess, ...] = ()) -> None:
        """Kill an app because the phone as a whole is out of memory, whatever the app uses.

        Args:
            pid: Of the app.
            others: What was killed before it; the same report lists them.

        Raises:
            NoSuchProcessError: If no running app has the pid.
        """
        process = self._process(pid)
        counter = process.counter
        process.kill = Kill(
            KillReason.VM_PAGE_SHORTAGE,
            footprint_bytes=(counter and counter.footprint_bytes()) or 0,
            cpu_time_s=(counter and counter.cpu_time_s()) or 0.0,
            others=others,
        )
        process.send_signal(signals.SIGKILL)

    @property
    def sampler_lag(self) -> SamplerLag:
        """How late the memory sampler has been since the start."""
        return self._sampler.lag

    async def shut_down(self) -> None:
        """Kill and reap every app. Bounded; nothing can be launched afterwards.

        Raises:
            KernelError: If an app is not gone after `KILL_LIMIT_S`; the host itself is then ill.
        """
        self._is_down = True
        try:
            await self._kill(list(self._running.values()))
        finally:
            self._sampler.stop()
            self._suspensions.forget_all()
            self.reports.flush()

    def started(self, process: AppProcess) -> None:
        """Take a new process (called by the process)."""
        self._running[process.pid] = process
        if process.counter is not None:
            self._sampler.watch(
                process.pid,
                process.counter,
                self._facts.host_limit_bytes,
                kill=lambda: process.send_signal(signals.SIGKILL),
                warn=lambda reading: self._warn(process, reading),
            )
        self._tell_of("launched", process)

    def wrote(self, process: AppProcess, line: str) -> None:
        """Take a line of output (called by the process)."""
        self._log(LogLine(process.pid, process.app.name, process.app.name, line))

    def died(self, process: AppProcess) -> None:
        """Take the death of a process (called by the process)."""
        self._running.pop(process.pid, None)
        self._suspensions.forget(process.pid)
        reading = self._sampler.unwatch(process.pid)
        if reading and process.kill is None:
            process.kill = Kill(
                KillReason.PER_PROCESS_LIMIT,
                reading.footprint_bytes,
                reading.cpu_time_s,
                reading.lag_s,
            )
        self._dead.append(process)
        process.socket.unlink(missing_ok=True)

    def ended(self, process: AppProcess) -> None:
        """Take a process whose output is read to its end (called by the process)."""
        self._tell_of("ended", process)
        if process.signal != signals.SIGKILL:  # it was faster
            process.kill = process.termination = None
        if process.kill is None:
            self._coroner.died(process)
            return
        event = self._coroner.killed(process, process.kill)
        if self._record:
            self._record(event)

    async def _start(
        self, app: InstalledApp, environment: Mapping[str, str], arguments: Sequence[str]
    ) -> AppProcess:
        port = port_of(app, environment)
        socket = socket_of(app, self._facts.port_folder, port)
        self._refuse_if_impossible(app, port)
        socket.unlink(missing_ok=True)  # left by a host that was killed
        complete = child_environment(self._facts, app, socket, environment, os.environ)
        process = await spawn(app, arguments, complete, port=port, socket=socket, owner=self)
        if self._is_down:  # meanwhile
            await self._kill([process])
            raise LaunchRefusedError(app.bundle_id, "the phone was shut down")
        return process

    def _process(self, pid: int) -> AppProcess:
        try:
            return self._running[pid]
        except KeyError:
            raise NoSuchProcessError(pid) from None

    def _refuse_if_impossible(self, app: InstalledApp, port: int) -> None:
        if self._is_down:
            raise LaunchRefusedError(app.bundle_id, "the phone is shut down")
        for other in self._running.values():
            if other.port == port:
                facts = f"port {port} belongs to {other.app.name}, pid {other.pid}"
                raise LaunchRefusedError(app.bundle_id, facts)

    def _warn(self, process: AppProcess, reading: Reading) -> None:
        if process.pid not in self._running:
            return  # it ended meanwhile
        self._tell(process, MemoryWarning())
        self._tell_of("memory_warning", process)
        if self._record:
            seen_bytes = reading.footprint_bytes * self._facts.memory_scale
            limit_bytes = self._facts.limit_bytes
            name = process.app.name
            self._record(
                MemoryEvent("warning", process.pid, name, seen_bytes, limit_bytes, reading.lag_s)
            )

    def _tell(self, process: AppProcess, condition: Condition) -> None:
        if not process.tell(condition):
            text = f"conditions channel of pid {process.pid} is closed or full, one line is lost"
            self._log(LogLine(0, "kernel", "kernel", text))

    def _suspend(self, process: AppProcess) -> None:
        process.send_signal(signals.SIGSTOP)
        self._tell_of("suspended", process)

    def _rows(self) -> list[Row]:
        """Return what runs, as a JetsamEvent lists it."""
        now_s = time.time()
        apps = [
            app_row(process, self.footprint_bytes(pid) or 0, self.cpu_time_s(pid) or 0.0)
            for pid, process in self._running.items()
        ]
        return [*apps, *(system_row(each, self._facts, now_s) for each in self.system.running())]

    def _tell_of(self, kind: AppChangeKind, process: AppProcess) -> None:
        if self._notify:
            self._notify(process.change(kind))

    async def _kill(self, processes: Sequence[AppProcess]) -> None:
        for process in processes:
            process.send_signal(signals.SIGKILL)
        try:
            async with asyncio.timeout(KILL_LIMIT_S):
                for process in processes:
                    await process.ended.wait()
        except TimeoutError as error:
            pids = ", ".join(str(p.pid) for p in processes if not p.ended.is_set())
            raise KernelError(f"Not gone {KILL_LIMIT_S:g} s after SIGKILL: pid {pids}") from error
