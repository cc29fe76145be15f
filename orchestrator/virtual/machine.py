"""The part of a phone that reboots: its kernel, and what decides whether an app may start."""

from __future__ import annotations

import asyncio
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.kernel import (
    BatteryChange,
    Kernel,
    KernelFacts,
    LaunchRefusedError,
    LowPowerChange,
    ThermalChange,
    ThermalLevel,
)
from orchestrator.virtual.services.apps.system_apps import SYSTEM_APPS
from orchestrator.virtual.services.logs.bus import LogBus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from orchestrator.virtual.events import EventLog, Fact
    from orchestrator.virtual.identity import Identity
    from orchestrator.virtual.kernel import AppChange, Condition, MemoryEvent
    from orchestrator.virtual.services.apps.store import AppStore
    from orchestrator.virtual.settings import Settings

_OPEN_APPLICATION: Final = "FBSOpenApplicationServiceErrorDomain"


class LaunchDeniedError(Exception):
    """The phone does not start an app; carries an NSError's domain, code and text."""

    def __init__(self, code: int, text: str, domain: str = _OPEN_APPLICATION) -> None:
        self.domain, self.code, self.text = domain, code, text
        super().__init__(f"{domain} {code}: {text}")


# By the host's numbers: what ends a process that handles no signal.
_FATAL: Final = frozenset(
    {signal.SIGKILL, signal.SIGTERM, signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL}
)


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """One process of the phone: an app, or one of iOS itself."""

    pid: int
    name: str
    path: str  # of its executable: on the host for an app, on the phone for others
    is_app: bool
    is_system: bool  # no process of the host
    bundle_id: str | None
    started_s: float  # Unix time


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """What does not change over a reboot."""

    identity: Identity
    memory_scale: int  # phone bytes per host byte
    entitled: bool  # whether apps hold increased-memory-limit
    port_folder: Path
    crash_folder: Path


class Machine:
    """Kernel, log, settings and apps of one phone, as its daemons share them."""

    def __init__(
        self, facts: MachineFacts, settings: Settings, apps: AppStore, events: EventLog
    ) -> None:
        self.facts, self.settings, self.apps, self._events = facts, settings, apps, events
        self.log = LogBus()
        self.watchers: set[Callable[[AppChange], None]] = set()
        self._heat = ThermalLevel.NOMINAL  # without what a host induces
        self.boot_time_s = time.time()
        self.kernel = self._make_kernel()

    @property
    def identity(self) -> Identity:
        """Who the phone is."""
        return self.facts.identity

    def _make_kernel(self) -> Kernel:
        identity = self.identity
        facts = KernelFacts(
            model=identity.model,
            udid=identity.udid,
            os=identity.os,
            build=identity.build,
            memory_scale=self.facts.memory_scale,
            port_folder=self.facts.port_folder,
            crash_folder=self.facts.crash_folder,
            entitled=self.facts.entitled,
            boot_time_s=self.boot_time_s,
        )
        return Kernel(
            facts,
            log=self.log.publish,
            record=self._record,
            notify=self._notify,
            policy=self.settings.reports,
            clock=self.settings.clock,
        )

    def note(self, kind: str, /, **facts: Fact) -> None:
        """Add an event of this phone to the farm's log."""
        self._events.record(self.identity.name, kind, **facts)

    def _record(self, event: MemoryEvent) -> None:
        self.note(
            f"memory_{event.kind}",
            pid=event.pid,
            app=event.name,
            footprint_bytes=event.footprint_bytes,
            limit_bytes=event.limit_bytes,
            lag_s=round(event.lag_s, 4),
            report=event.report,
        )

    def _notify(self, change: AppChange) -> None:
        if change.kind == "launched":
            self._tell_state(change.pid)
        if change.kind != "memory_warning":  # `_record` tells of it with numbers
            ended = {"exit": change.exit_code, "signal": change.signal}
            facts: dict[str, Fact] = {"pid": change.pid, "app": change.name}
            self.note(f"app_{change.kind}", **(facts | (ended if change.kind == "ended" else {})))
        for watcher in tuple(self.watchers):
            watcher(change)

    def _tell_state(self, pid: int) -> None:
        """Tell an app that has just been launched what is not as usual."""
        if self.settings.thermal is not ThermalLevel.NOMINAL:
            self.kernel.send_condition(pid, ThermalChange(self.settings.thermal))
        if self.settings.low_power:
            self.kernel.send_condition(pid, LowPowerChange(value=True))

    def tell_apps(self, condition: Condition) -> None:
        """Tell every running app a condition."""
        for process in self.kernel.processes():
            self.kernel.send_condition(process.pid, condition)

    def heat(self, level: ThermalLevel) -> None:
        """Set how hot the phone is by itself."""
        self._heat = level
        self._set_thermal(level)

    def induce_heat(self, level: ThermalLevel | None) -> None:
        """Set the state that a host induces, None for none any more."""
        self._set_thermal(self._heat if level is None else level)

    def _set_thermal(self, level: ThermalLevel) -> None:
        if level is not self.settings.thermal:
            self.settings.thermal = level
            self.note("thermal", state=level.value)
            self.tell_apps(ThermalChange(level))

    def set_low_power(self, *, value: bool) -> None:
        """Switch Low Power Mode."""
        self.settings.low_power = value
        self.tell_apps(LowPowerChange(value=value))

    def tell_battery(self) -> None:
        """Tell every running app the battery's state."""
        battery = self.settings.battery
        self.tell_apps(BatteryChange(battery.level_percent, battery.charging))

    def lock(self, suspend_after_s: float) -> None:
        """Lock the screen: apps leave it and are suspended a little later."""
        self.settings.locked = True
        for process in self.kernel.processes():
            self.kernel.to_background(process.pid, suspend_after_s)

    def unlock(self) -> None:
        """Unlock; apps come back to the screen."""
        self.settings.locked = self.settings.before_first_unlock = False
        for process in self.kernel.processes():
            self.kernel.to_foreground(process.pid)

    async def power_off(self) -> None:
        """Kill every app."""
        await self.kernel.shut_down()
        self.heat(ThermalLevel.NOMINAL)

    def boot(self) -> None:
        """Start a new kernel; the old one must be off."""
        self.boot_time_s = time.time()
        self.kernel = self._make_kernel()

    async def launch(
        self,
        bundle_id: str,
        environment: Mapping[str, str],
        arguments: Sequence[str],
        *,
        kill_existing: bool,
    ) -> int:
        """Start an installed app and return its pid.

        Raises:
            LaunchDeniedError: If the phone is locked, has no such app, or cannot start it.
        """
        record, system_app = self.apps.record(bundle_id), SYSTEM_APPS.get(bundle_id)
        opening = f'The request to open "{bundle_id}" failed'
        if record is None and system_app is None:
            raise LaunchDeniedError(4, f"{opening}: the application is not installed")
        if self.settings.locked:
            reason = "the device was not, or could not be, unlocked"
            raise LaunchDeniedError(7, f"Unable to launch {bundle_id} because {reason}: Locked")
        if record is None or system_app is not None:
            return self._launch_system_app(bundle_id, kill_existing=kill_existing)
        try:
            return await self.kernel.launch(
                record.installed, environment, arguments, kill_existing=kill_existing
            )
        except LaunchRefusedError as refusal:
            raise LaunchDeniedError(1, f"{opening}: {refusal}") from refusal

    def _launch_system_app(self, bundle_id: str, *, kill_existing: bool) -> int:
        app, system = SYSTEM_APPS[bundle_id], self.kernel.system
        pid = system.launch(bundle_id, app.executable, app.path)
        if kill_existing:
            system.end(pid)
            pid = system.launch(bundle_id, app.executable, app.path)
        return pid

    def processes(self) -> list[RunningProcess]:
        """Return everything that runs, in the order of pids."""
        apps = [
            RunningProcess(p.pid, p.name, str(p.executable), True, False, p.bundle_id, p.started_s)
            for p in self.kernel.processes()
        ]
        system = [
            RunningProcess(
                p.pid, p.name, p.path, p.bundle_id is not None, True, p.bundle_id, p.started_s
            )
            for p in self.kernel.system.running()
        ]
        return sorted([*apps, *system], key=lambda process: process.pid)

    def process(self, pid: int) -> RunningProcess | None:
        """Return what runs under a pid."""
        return next((process for process in self.processes() if process.pid == pid), None)

    def send_signal(self, pid: int, number: int) -> None:
        """Send a signal, by the host's number, to any process.

        Raises:
            NoSuchProcessError: If nothing has the pid.
        """
        system = self.kernel.system.find(pid)
        if system is None:
            self.kernel.send_signal(pid, number)
        elif number in _FATAL and pid > 1:
            self.kernel.system.end(pid)

    async def kill_app(self, bundle_id: str) -> None:
        """Kill the app if it runs, and wait for its end."""
        for process in self.kernel.processes():
            if process.bundle_id == bundle_id:
                ended = _Ended()
                self.kernel.listen(process.pid, ended)
                self.kernel.send_signal(process.pid, signal.SIGKILL)
                await ended.event.wait()

    async def uninstall(self, bundle_id: str) -> None:
        """Remove an app with its container; one that is not there is no error."""
        if self.apps.record(bundle_id) is not None:
            await self.kill_app(bundle_id)
            self.apps.remove(bundle_id)


class _Ended:
    """A listener that waits for the end of a process."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def output(self, pid: int, line: str) -> None:
        """Ignore output; the first listener gets what came before it."""

    def exited(self, pid: int, exit_code: int | None, signal: int | None) -> None:
        """Note the end."""
        self.event.set()
