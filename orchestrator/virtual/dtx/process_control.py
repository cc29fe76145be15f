"""com.apple.instruments.server.services.processcontrol: launch, signal, observe."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.dtx.connection import CallError
from orchestrator.virtual.dtx.nska import NSError
from orchestrator.virtual.dtx.signals import to_darwin, to_host
from orchestrator.virtual.kernel import NoSuchProcessError
from orchestrator.virtual.machine import LaunchDeniedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.virtual.dtx.connection import Channel, Method
    from orchestrator.virtual.dtx.nska import Archivable
    from orchestrator.virtual.machine import Machine

_KILL, _STOP, _CONTINUE = 9, 17, 19  # Darwin's numbers
_NO_SUCH_PROCESS: Final = 3  # ESRCH
_INVALID: Final = 22  # EINVAL


class ProcessControl:
    """One channel; a `ProcessListener` for every process it launched or observes."""

    def __init__(self, machine: Machine, channel: Channel) -> None:
        self._machine, self._channel = machine, channel
        self._observed: set[int] = set()
        self._lost_lines = 0

    @property
    def methods(self) -> Mapping[str, Method]:
        """Selectors and what they call."""
        launch = "launchSuspendedProcessWithDevicePath:bundleIdentifier:environment:arguments:"
        return {
            f"{launch}options:": self._launch,
            "isPidDebuggable:": self._is_debuggable,
            "killPid:": lambda pid: self._signal(_KILL, pid),
            "processIdentifierForBundleIdentifier:": self._pid_of,
            "requestDisableMemoryLimitsForPid:": self._lift_limit,
            "resumePid:": lambda pid: self._signal(_CONTINUE, pid),
            "sendSignal:toPid:": self._signal,
            "startObservingPid:": self._observe,
            "stopObservingPid:": self._forget,
            "suspendPid:": lambda pid: self._signal(_STOP, pid),
        }

    def closed(self) -> None:
        """Stop observing; launched apps go on."""
        for pid in self._observed:
            self._machine.kernel.unlisten(pid, self)
        self._observed.clear()

    async def _launch(
        self,
        _path: str,
        bundle_id: str,
        environment: Archivable,
        arguments: Archivable,
        options: Archivable,
    ) -> int:
        try:
            pid = await self._machine.launch(
                bundle_id,
                {str(name): str(value) for name, value in (environment or {}).items()},
                [str(argument) for argument in arguments or []],
                kill_existing=bool((options or {}).get("KillExisting", True)),
            )
        except LaunchDeniedError as denial:
            raise CallError(NSError.of(denial.domain, denial.code, denial.text)) from denial
        self._observe(pid)
        if (options or {}).get("StartSuspendedKey"):
            self._signal(_STOP, pid)
        return pid

    def _observe(self, pid: int) -> None:
        if pid in self._observed or self._machine.kernel.system.find(pid):
            return
        try:
            self._machine.kernel.listen(pid, self)
        except NoSuchProcessError as error:
            raise CallError(_no_such_process(pid)) from error
        self._observed.add(pid)

    def _forget(self, pid: int) -> None:
        self._observed.discard(pid)
        self._machine.kernel.unlisten(pid, self)

    def _signal(self, signal: int, pid: int) -> None:
        number = to_host(signal)
        if number is None:
            text = f"no signal {signal}"
            raise CallError(NSError.of("NSPOSIXErrorDomain", _INVALID, text))
        try:
            self._machine.send_signal(pid, number)
        except NoSuchProcessError as error:
            raise CallError(_no_such_process(pid)) from error

    def _is_debuggable(self, pid: int) -> bool:
        """Whether the app was signed for development: those that were installed here were."""
        process = self._machine.process(pid)
        return process is not None and not process.is_system

    def _lift_limit(self, pid: int) -> bool:
        # A soak is about the memory limit, so the phone lifts it for no app.
        return self._machine.kernel.system.find(pid) is not None

    def _pid_of(self, bundle_id: str) -> int:
        """Return the pid of a running app, 0 if it does not run."""
        processes = self._machine.processes()
        return next((p.pid for p in processes if p.bundle_id == bundle_id), 0)

    def output(self, pid: int, line: str) -> None:
        """Pass a line of output on; when the host is too slow, say later how many were lost."""
        if self._lost_lines:
            line = f"({self._lost_lines} lines of output were lost)\n{line}"
        sent = self._channel.call(
            "outputReceived:fromProcess:atTime:", f"{line}\n", pid, int(time.time())
        )
        self._lost_lines = 0 if sent else self._lost_lines + 1

    def exited(self, pid: int, exit_code: int | None, signal: int | None) -> None:
        """Pass the end of a process on."""
        self._observed.discard(pid)
        self._channel.call(
            "processWithPID:terminatedWithExitCode:orCrashingSignal:",
            pid,
            exit_code,
            None if signal is None else to_darwin(signal),
            must_arrive=True,
        )


def _no_such_process(pid: int) -> NSError:
    return NSError.of("NSPOSIXErrorDomain", _NO_SUCH_PROCESS, f"No such process: {pid}")
