"""Process control whose output and exits are delivered; the library queues one and logs the other.

Its output queue is unbounded and ends with an exception outside its tree, so both are overridden.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pymobiledevice3.dtx import DTXContext, dtx_on_invoke
from pymobiledevice3.dtx_service import DtxService
from pymobiledevice3.services.dvt.instruments.process_control import (
    ProcessControl,
    ProcessControlService,
)

from orchestrator.device.events import AppExited, AppOutput
from orchestrator.device.keeper.lines import LineAssembler, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.device.events import SessionEvent


class ProcessWatch:
    """Turns what the phone sends into events; everything in it is hostile.

    Args:
        emit: Takes events; must not block.
        lost: Called with the reason when the channel is gone.
    """

    def __init__(self, emit: Callable[[SessionEvent], None], lost: Callable[[str], None]) -> None:
        self._emit = emit
        self.lost = lost
        self._lines: dict[int, LineAssembler] = {}

    def output(self, message: object, pid: object) -> None:
        """Take a piece of output."""
        if not isinstance(message, str) or not isinstance(pid, int):
            return
        for line in self._lines.setdefault(pid, LineAssembler()).push(message):
            self._emit(AppOutput(pid, line))

    def exited(self, pid: object, exit_code: object, signal: object) -> None:
        """Take an exit; a crashing signal of 0 is none."""
        if not isinstance(pid, int):
            return
        for line in self._lines.pop(pid, LineAssembler()).flush():
            self._emit(AppOutput(pid, line))
        number = signal if isinstance(signal, int) and signal > 0 else None
        code = exit_code if isinstance(exit_code, int) and number is None else None
        self._emit(AppExited(pid, code, number))


class WatchedProcessControlService(ProcessControlService):
    """The channel; set `watch` before the first launch."""

    IDENTIFIER = ProcessControlService.IDENTIFIER

    def __init__(self, ctx: DTXContext) -> None:
        super().__init__(ctx)
        self.watch: ProcessWatch | None = None

    def on_closed(self, reason: str = "") -> None:
        """Report the loss of the channel."""
        if self.watch is not None:
            self.watch.lost(f"the phone closed the developer session {printable(reason)}".strip())
        super().on_closed(reason)

    @dtx_on_invoke("outputReceived:fromProcess:atTime:")
    async def _on_output_received(self, message: str, pid: int, timestamp: Any) -> None:  # noqa: ANN401 - the library's signature
        if self.watch is not None:
            self.watch.output(message, pid)

    @dtx_on_invoke("processWithPID:terminatedWithExitCode:orCrashingSignal:")
    async def _on_process_terminated(
        self, pid: int, exit_code: int | None, crashing_signal: int | None
    ) -> None:
        if self.watch is not None:
            self.watch.exited(pid, exit_code, crashing_signal)


class WatchedProcessControl(ProcessControl, DtxService[WatchedProcessControlService]):
    """Process control over the watched channel."""

    @property
    def service(self) -> WatchedProcessControlService:
        """The open channel."""
        service = super().service
        if not isinstance(service, WatchedProcessControlService):
            raise TypeError("the channel was opened with another class")
        return service
