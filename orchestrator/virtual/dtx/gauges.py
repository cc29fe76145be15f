"""Xcode's debug gauges: network traffic and energy per process.

A virtual phone has no radio and no battery that apps could drain, so its counters stand still.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.virtual.dtx.connection import Method

_NETWORK: Final = tuple(
    f"net.{direction}{unit}{change}"
    for direction in ("", "rx.", "tx.")
    for unit in ("bytes", "packets")
    for change in ("", ".delta")
)
_ENERGY: Final = tuple(
    f"energy.{part}.{name}"
    for part in (
        "appstate",
        "cpu",
        "display",
        "gpu",
        "inducedthermalstate",
        "location",
        "networking",
    )
    for name in ("cost", "overhead")
)


class Gauge:
    """One channel: the same three calls for every gauge."""

    def __init__(self, counters: tuple[str, ...]) -> None:
        self._counters = counters
        self._sampled: list[int] = []

    @classmethod
    def network(cls) -> Gauge:
        """Return com.apple.xcode.debug-gauge-data-providers.NetworkStatistics."""
        return cls(_NETWORK)

    @classmethod
    def energy(cls) -> Gauge:
        """Return com.apple.xcode.debug-gauge-data-providers.Energy."""
        return cls(("energy.cost", "energy.overhead", *_ENERGY))

    @property
    def methods(self) -> Mapping[str, Method]:
        """Selectors and what they call."""
        return {
            "startSamplingForPIDs:": self._start,
            "stopSamplingForPIDs:": self._stop,
            "sampleAttributes:forPIDs:": self._sample,
        }

    def closed(self) -> None:
        """Nothing to give back."""

    def _start(self, pids: object) -> list[int]:
        self._sampled = _integers(pids)
        return self._sampled

    def _stop(self, _pids: object) -> list[int]:
        stopped, self._sampled = self._sampled, []
        return stopped

    def _sample(self, _attributes: object, pids: object) -> dict[int, dict[str, Any]]:
        now = dt.datetime.now(dt.UTC)
        zeros: dict[str, Any] = dict.fromkeys(self._counters, 0)
        return {pid: {**zeros, "pid": pid, "time": now} for pid in _integers(pids)}


def _integers(values: object) -> list[int]:
    return [value for value in values if isinstance(value, int)] if isinstance(values, list) else []
