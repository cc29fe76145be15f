"""com.apple.instruments.server.services.mobilenotifications: states of apps, memory warnings."""

from __future__ import annotations

import datetime as dt
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.virtual.dtx.connection import Channel, Method
    from orchestrator.virtual.kernel import AppChange
    from orchestrator.virtual.machine import Machine

_STATES: Final = {
    "launched": (8, "Foreground Running"),
    "foreground": (8, "Foreground Running"),
    "background": (4, "Background Running"),
    "suspended": (2, "Suspended"),
    "ended": (1, "Terminated"),
}
_WARNING_LEVEL: Final = 2.0


class Notifications:
    """One channel; both kinds are off until the host asks."""

    def __init__(self, machine: Machine, channel: Channel) -> None:
        self._machine, self._channel = machine, channel
        self._wants_states = self._wants_memory = False
        machine.watchers.add(self._on_change)

    @property
    def methods(self) -> Mapping[str, Method]:
        """Selectors and what they call."""
        return {
            "setApplicationStateNotificationsEnabled:": self._enable_states,
            "setMemoryNotificationsEnabled:": self._enable_memory,
        }

    def closed(self) -> None:
        """Stop listening."""
        self._machine.watchers.discard(self._on_change)

    def _enable_states(self, enabled: object) -> None:
        self._wants_states = bool(enabled)

    def _enable_memory(self, enabled: object) -> None:
        self._wants_memory = bool(enabled)

    def _on_change(self, change: AppChange) -> None:
        if change.kind == "memory_warning":
            if self._wants_memory:
                self._channel.call("memoryLevelNotification:", self._memory(change))
        elif self._wants_states:
            self._channel.call("applicationStateNotification:", self._state(change))

    def _memory(self, change: AppChange) -> dict[str, Any]:
        return {"code": _WARNING_LEVEL, "pid": change.pid, **_when()}

    def _state(self, change: AppChange) -> dict[str, Any]:
        number, text = _STATES[change.kind]
        return {
            "appName": change.name,
            "displayID": change.bundle_id,
            "execName": change.executable,
            "pid": change.pid,
            "state": number,
            "state_description": text,
            **_when(),
        }


def _when() -> dict[str, Any]:
    return {
        "mach_absolute_time": time.monotonic_ns() * 24 // 1000,
        "timestamp": dt.datetime.now(dt.UTC),
    }
