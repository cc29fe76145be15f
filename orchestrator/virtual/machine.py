"""The part of a phone that reboots: its kernel, and what decides whether an app may start."""

from __future__ import annotations

import asyncio
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.kernel import Kernel, KernelFacts, LaunchRefusedError
from orchestrator.virtual.services.logs.bus import LogBus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from orchestrator.virtual.identity import Identity
    from orchestrator.virtual.services.apps.store import AppStore
    from orchestrator.virtual.settings import Settings

_OPEN_APPLICATION: Final = "FBSOpenApplicationServiceErrorDomain"


class LaunchDeniedError(Exception):
    """The phone does not start an app; carries an NSError's domain, code and text."""

    def __init__(self, code: int, text: str, domain: str = _OPEN_APPLICATION) -> None:
        self.domain, self.code, self.text = domain, code, text
        super().__init__(f"{domain} {code}: {text}")


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

    def __init__(self, facts: MachineFacts, settings: Settings, apps: AppStore) -> None:
        self.facts, self.settings, self.apps = facts, settings, apps
        self.log = LogBus()
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
        return Kernel(facts, log=self.log.publish)

    async def power_off(self) -> None:
        """Kill every app."""
        await self.kernel.shut_down()

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
        record = self.apps.records().get(bundle_id)
        opening = f'The request to open "{bundle_id}" failed'
        if record is None:
            raise LaunchDeniedError(4, f"{opening}: the application is not installed")
        if self.settings.locked:
            reason = "the device was not, or could not be, unlocked"
            raise LaunchDeniedError(7, f"Unable to launch {bundle_id} because {reason}: Locked")
        try:
            return await self.kernel.launch(
                record.installed, environment, arguments, kill_existing=kill_existing
            )
        except LaunchRefusedError as refusal:
            raise LaunchDeniedError(1, f"{opening}: {refusal}") from refusal

    async def kill_app(self, bundle_id: str) -> None:
        """Kill the app if it runs, and wait for its end."""
        for process in self.kernel.processes():
            if process.bundle_id == bundle_id:
                ended = _Ended()
                self.kernel.listen(process.pid, ended)
                self.kernel.send_signal(process.pid, signal.SIGKILL)
                await ended.event.wait()


class _Ended:
    """A listener that waits for the end of a process."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def output(self, pid: int, line: str) -> None:
        """Ignore output; the first listener gets what came before it."""

    def exited(self, pid: int, exit_code: int | None, signal: int | None) -> None:
        """Note the end."""
        self.event.set()
