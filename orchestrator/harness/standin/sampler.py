"""Samples and heartbeats: a thread that writes what the phone is like, at a fixed period."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.harness.standin.clock import NS_PER_S, LaunchClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.harness.standin.memory import MemoryGauge
    from orchestrator.harness.standin.telemetry import Telemetry

HEARTBEAT_NS: Final = 5 * NS_PER_S
_SUSPENDED_NS: Final = 2 * NS_PER_S  # a wake-up later than this was no busy host, but a stop
_MOVED_PERCENT: Final = 2  # of the limit


@dataclass(slots=True)
class PhoneConditions:
    """What the phone last said of itself."""

    thermal: str = "nominal"
    battery_percent: int | None = None
    charging: bool | None = None
    low_power: bool = False


class Sampler:
    """Writes `sample` and `heartbeat` from its own thread until it is closed."""

    def __init__(
        self,
        telemetry: Telemetry,
        gauge: MemoryGauge,
        clock: LaunchClock,
        *,
        period_ms: int,
        facts: Callable[[], dict[str, object]],
        tick: Callable[[], None],
    ) -> None:
        """Prepare the thread.

        Args:
            telemetry: Where samples go.
            gauge: Footprint of the app.
            clock: Time of the launch.
            period_ms: Time between two samples.
            facts: The rest of a sample.
            tick: Called at every wake-up.
        """
        self._telemetry, self._gauge, self._clock = telemetry, gauge, clock
        self._period_ns = period_ms * NS_PER_S // 1000
        self._facts, self._tick = facts, tick
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._sampled_footprint = 0
        self._suspended_ns = 0

    def start(self) -> None:
        """Start sampling, with a first sample at once."""
        self._thread.start()

    def close(self) -> None:
        """Stop sampling and wait for the thread, with a last sample."""
        self._closing.set()
        self._thread.join()
        self.sample()

    def sample(self) -> None:
        """Write a sample now."""
        reading = self._gauge.read()
        self._sampled_footprint = reading.footprint
        self._telemetry.record(
            "sample",
            footprint=reading.footprint,
            peak=self._gauge.peak,
            available=reading.available,
            compressed=0,
            neural_ledger=None,
            host_bytes=reading.host_bytes,
            surfaces=0,
            **self._facts(),
        )

    def sample_if_moved(self) -> None:
        """Write a sample where the footprint moved by over 2 % of the limit since the last."""
        limit_bytes = self._gauge.limit_bytes or 0
        moved_bytes = abs(self._gauge.read().footprint - self._sampled_footprint)
        if moved_bytes * 100 > limit_bytes * _MOVED_PERCENT:
            self.sample()

    def _run(self) -> None:
        sample_ns = self._clock.now_ns()
        heartbeat_ns = sample_ns + HEARTBEAT_NS
        while not self._closing.is_set():
            self._tick()
            now_ns = self._clock.now_ns()
            if now_ns >= sample_ns:
                self.sample()
                sample_ns = max(sample_ns + self._period_ns, now_ns)
            if now_ns >= heartbeat_ns:
                self._telemetry.heartbeat(self._suspended_ns / NS_PER_S)
                heartbeat_ns = max(heartbeat_ns + HEARTBEAT_NS, now_ns)
            self._wait_until(min(sample_ns, heartbeat_ns))

    def _wait_until(self, due_ns: int) -> None:
        """Sleep, and count as suspended what passed far beyond the time asked for."""
        self._closing.wait(max(0, due_ns - self._clock.now_ns()) / NS_PER_S)
        late_ns = self._clock.now_ns() - due_ns
        if late_ns > _SUSPENDED_NS:
            self._suspended_ns += late_ns
