"""Xcode's debug gauges: network traffic and energy per process.

A virtual phone has no radio and no battery that apps could drain, so its counters stand still.
"""

from __future__ import annotations

import datetime as dt
import time
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
_PARTS: Final = ("appstate", "cpu", "display", "gpu", "location", "networking", "thermalstate")
_ENERGY: Final = (
    *("energy.cost", "energy.overhead"),
    *(f"energy.{part}.{name}" for part in _PARTS for name in ("cost", "overhead")),
)


class Gauge:
    """One channel: the same three calls for every gauge."""

    def __init__(self, counters: tuple[str, ...]) -> None:
        self._counters = counters
        self._sampled: list[int] = []
        self._started_s = time.monotonic()

    @classmethod
    def network(cls) -> Gauge:
        """Return com.apple.xcode.debug-gauge-data-providers.NetworkStatistics."""
        return cls(_NETWORK)

    @classmethod
    def energy(cls) -> Gauge:
        """Return com.apple.xcode.debug-gauge-data-providers.Energy."""
        return cls(_ENERGY)

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
        zeros: dict[str, Any] = dict.fromkeys(self._counters, 0)
        return {pid: {**zeros, **self._stamp(pid)} for pid in _integers(pids)}

    def _stamp(self, pid: int) -> dict[str, Any]:
        if self._counters is _NETWORK:
            return {"pid": pid, "time": dt.datetime.now(dt.UTC)}
        since_s = int(time.monotonic() - self._started_s)
        return {"kIDEGaugeSecondsSinceInitialQueryKey": since_s, "energy.version": 1}


def _integers(values: object) -> list[int]:
    return [value for value in values if isinstance(value, int)] if isinstance(values, list) else []
