"""Faults that an app feels: heat, memory warnings, shortage, the watchdog, the home gesture."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from orchestrator.virtual.faults.base import Fault, FaultError
from orchestrator.virtual.kernel import ThermalLevel
from orchestrator.virtual.kernel.causes import too_hot, watchdog

if TYPE_CHECKING:
    from orchestrator.virtual.faults.base import Stage, Undo
    from orchestrator.virtual.kernel import ProcessInfo
    from orchestrator.virtual.machine import Machine

_CENTI_C: Final = {
    ThermalLevel.NOMINAL: 2950,
    ThermalLevel.FAIR: 3600,
    ThermalLevel.SERIOUS: 4100,
    ThermalLevel.CRITICAL: 4600,
}


class HeatStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step of a heat curve."""

    after_s: float  # since the step before
    state: ThermalLevel


_CURVE: Final = (
    HeatStep(0.0, ThermalLevel.FAIR),
    HeatStep(30.0, ThermalLevel.SERIOUS),
    HeatStep(60.0, ThermalLevel.CRITICAL),
)


class Heat(Fault, frozen=True, tag="heat"):
    """Warm the phone along a curve of thermal states; undone, it is cool.

    Attributes:
        state: One state at once, in place of a curve.
        curve: Steps, each with the seconds since the one before.
        kills: Whether apps are ended at the last step, to let the phone cool off.
    """

    state: ThermalLevel | None = None
    curve: tuple[HeatStep, ...] = _CURVE
    kills: bool = False

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102 - of the base
        steps = self.curve if self.state is None else (HeatStep(0.0, self.state),)
        task = asyncio.ensure_future(self._follow(stage, steps))
        stage.farm.faults.hold(task)

        def cool() -> None:
            task.cancel()
            _warm(stage, ThermalLevel.NOMINAL)

        return cool

    async def _follow(self, stage: Stage, steps: tuple[HeatStep, ...]) -> None:
        for step in steps:
            await asyncio.sleep(step.after_s)
            _warm(stage, step.state)
        if self.kills:
            kernel = stage.phone.machine.kernel
            for process in kernel.processes():
                kernel.terminate(process.pid, too_hot(process.bundle_id, process.pid))


def _warm(stage: Stage, level: ThermalLevel) -> None:
    stage.phone.settings.battery.temperature_centi_c = _CENTI_C[level]
    stage.phone.machine.heat(level)


class MemoryWarning(Fault, frozen=True, tag="memory_warning"):
    """Warn apps of low memory, whatever they use."""

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        for process in _apps(stage.phone.machine):
            stage.phone.machine.kernel.warn(process.pid)
        return None


class MemoryPressure(Fault, frozen=True, tag="memory_pressure"):
    """Let the phone run out of memory: idle daemons go first, then apps, the frontmost last.

    Attributes:
        depth: How far it goes: `idle` daemons, apps in the `background`, or the `frontmost` too.
    """

    depth: Literal["idle", "background", "frontmost"] = "frontmost"

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        stage.phone.machine.kernel.relieve(
            apps=self.depth != "idle", frontmost=self.depth == "frontmost"
        )
        return None


class Watchdog(Fault, frozen=True, tag="watchdog"):
    """End apps as the watchdog does, with 0x8badf00d."""

    event: Literal["scene-create", "scene-update", "process-exit"] = "scene-update"
    allowance_s: float = 10.0

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        kernel = stage.phone.machine.kernel
        for app in _apps(stage.phone.machine):
            cause = watchdog(app.bundle_id, app.pid, self.event, self.allowance_s)
            kernel.terminate(app.pid, cause)
        return None


class ThermalKill(Fault, frozen=True, tag="thermal_kill"):
    """End apps because the phone has to cool off, with 0xc00010ff."""

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        kernel = stage.phone.machine.kernel
        for app in _apps(stage.phone.machine):
            kernel.terminate(app.pid, too_hot(app.bundle_id, app.pid))
        return None


class Background(Fault, frozen=True, tag="background"):
    """Take apps off the screen; they are suspended a little later."""

    suspend_after_s: float = 5.0

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        kernel = stage.phone.machine.kernel
        for app in _apps(stage.phone.machine):
            kernel.to_background(app.pid, self.suspend_after_s)

        def restore() -> None:
            for app in kernel.processes():
                kernel.to_foreground(app.pid)

        return restore


def _apps(machine: Machine) -> list[ProcessInfo]:
    """Return the running apps.

    Raises:
        FaultError: If none runs.
    """
    apps = machine.kernel.processes()
    if not apps:
        raise FaultError("no app runs on this phone")
    return apps
