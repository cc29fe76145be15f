"""The app: one launch from its environment to its exit status."""

from __future__ import annotations

import os
import sys
import threading
import uuid
from typing import TYPE_CHECKING, Final

from orchestrator.harness.standin.clock import LaunchClock
from orchestrator.harness.standin.conditions import (
    PHONE_GONE_STATUS,
    die_with_parent,
    watch,
)
from orchestrator.harness.standin.defects import DefectName
from orchestrator.harness.standin.identity import APP, Launch
from orchestrator.harness.standin.journal import Journal, OversizeRecordError
from orchestrator.harness.standin.memory import MemoryGauge
from orchestrator.harness.standin.pressure import Pressure
from orchestrator.harness.standin.sampler import PhoneConditions
from orchestrator.harness.standin.server import ControlServer, listen
from orchestrator.harness.standin.soak import Soak
from orchestrator.harness.standin.start import SoakPlan, read_start

if TYPE_CHECKING:
    from orchestrator.harness.standin.fields import Fields

LISTENING: Final = "fleet-harness listening"
_DRAIN_LIMIT_S: Final = 5.0


def phone_gone() -> None:
    """End the process at once: the phone it runs on is no more."""
    os._exit(PHONE_GONE_STATUS)


class App:
    """One launch. The main thread runs the soak; others bring commands and conditions."""

    def __init__(self, launch: Launch) -> None:
        """Open the journal.

        Raises:
            OSError: If the container cannot be written.
        """
        self._launch = launch
        self._clock = LaunchClock()
        self._gauge = MemoryGauge(launch.memory_scale, launch.limit_bytes)
        launch_id = str(uuid.uuid4())
        path = launch.container / "Documents" / "fleet" / f"{launch_id}.ndjson"
        self._journal = Journal(path, launch_id, self._clock)
        self._pressure = Pressure(deaf=launch.defect.name is DefectName.NO_EVICT)
        self._conditions = PhoneConditions()
        self._begun = threading.Condition()
        self._plan: SoakPlan | None = None
        self._soak: Soak | None = None  # from its first records on

    def run(self) -> int:
        """Serve, soak once, and return the exit status."""
        if self._launch.parent_pid is not None and not die_with_parent(self._launch.parent_pid):
            return PHONE_GONE_STATUS
        listener = listen(self._launch)
        server = ControlServer(listener, self, self._launch.token, self._journal)
        server.start()
        if self._launch.socket_path is not None:
            watch(sys.stdin.fileno(), self, phone_gone)
        sys.stdout.write(LISTENING + "\n")
        sys.stdout.flush()
        try:
            return self._soak_once()
        finally:
            server.close(_DRAIN_LIMIT_S)
            if self._launch.socket_path is not None:
                self._launch.socket_path.unlink(missing_ok=True)

    def _soak_once(self) -> int:
        with self._begun:
            self._begun.wait_for(lambda: self._plan or self._pressure.stop_reason)
        if self._plan is None:
            return 0
        soak = Soak(
            self._launch,
            self._plan,
            self._journal,
            self._gauge,
            self._clock,
            self._pressure,
            self._conditions,
        )
        try:
            soak.open()
            self._soak = soak
            return 0 if soak.run() != "fault" else 1
        except (OSError, OversizeRecordError) as error:
            sys.stderr.write(f"{APP}: {error}\n")
            return 1

    # Desk: commands

    def identity(self) -> dict[str, object]:
        """Return what `hello` answers with."""
        return {
            "app": APP,
            "pid": os.getpid(),
            "launch": self._journal.launch,
            "started": self._plan is not None,
            "seq": self._journal.seq,
        }

    def status(self) -> dict[str, object]:
        """Return what `status` answers with."""
        soak = self._soak
        return {
            "started": self._plan is not None,
            "seq": self._journal.seq,
            "tokens_total": soak.telemetry.totals.tokens if soak else 0,
            "phase": soak.pipeline.phase if soak else "idle",
        }

    def start(self, command: Fields) -> bool:
        """Hand the plan to the main thread; return False where the soak was started before."""
        with self._begun:
            if self._plan is not None:
                return False
            self._plan = read_start(command, self._launch)
            self._begun.notify_all()
        return True

    def offset_after(self, launch: str, seq: int) -> int | None:
        """Return where the record after `seq` begins, None for another launch."""
        return self._journal.offset_after(seq) if launch == self._journal.launch else None

    def stop(self) -> None:
        """End the soak, or the app where it has not begun."""
        self._pressure.stop("stopped")
        with self._begun:
            self._begun.notify_all()

    # ConditionsTarget: the phone

    def memory_warning(self) -> None:
        """Warn the soak; before it the handler is not registered and nothing is heard."""
        if self._soak is not None:
            self._soak.warn("kernel")

    def thermal(self, state: str) -> None:
        """Keep the thermal state for the next sample."""
        self._conditions.thermal = state

    def battery(self, level_percent: int, *, charging: bool) -> None:
        """Keep the charge for the next sample."""
        self._conditions.battery_percent = level_percent
        self._conditions.charging = charging

    def foreground(self, *, value: bool) -> None:
        """Pass the app's move on; before the soak it has no record."""
        if self._soak is not None:
            self._soak.enter(foreground=value)
        else:
            self._pressure.set_foreground(value, lambda: None)

    def low_power(self, *, value: bool) -> None:
        """Keep the mode for the next sample."""
        self._conditions.low_power = value
