"""The thread that watches the memory of a phone's apps: it warns, and kills at the limit.

A thread of its own, because an event loop that is busy for 50 ms would let an app run far past
its limit. It sends SIGKILL itself and at once; warnings go through the event loop.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.kernel.pressure import Action, PressureGauge

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from orchestrator.virtual.kernel.counter import Counter

STOP_LIMIT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Reading:
    """The reading that made the sampler act."""

    footprint_bytes: int  # host bytes
    lag_s: float  # how much later than planned it was taken
    cpu_time_s: float  # of the process until then


@dataclass(frozen=True, slots=True)
class SamplerLag:
    """How late the sampler has been since it started."""

    sample_count: int = 0
    worst_s: float = 0.0


@dataclass(slots=True)
class _Watch:
    """One process under watch; only the holder of the sampler's lock touches it."""

    counter: Counter
    gauge: PressureGauge
    kill: Callable[[], None]
    warn: Callable[[Reading], None]
    due_s: float
    peak_bytes: int = 0
    killed: Reading | None = None


class MemorySampler:
    """Samples every watched process as often as its headroom demands. One per kernel."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._watches: dict[int, _Watch] = {}
        self._changed = threading.Condition()
        self._is_stopped = False
        self._thread: threading.Thread | None = None
        self._lag = SamplerLag()

    @property
    def lag(self) -> SamplerLag:
        """How late the sampler has been; a value of one moment."""
        return self._lag

    def watch(
        self,
        pid: int,
        counter: Counter,
        limit_bytes: int,
        *,
        kill: Callable[[], None],
        warn: Callable[[Reading], None],
    ) -> None:
        """Watch a process from now on.

        Args:
            pid: Names the watch.
            counter: Stays open until `unwatch`.
            limit_bytes: The limit in host bytes.
            kill: Called in the sampler's thread, at the limit, once.
            warn: Called in the event loop.
        """
        watch = _Watch(counter, PressureGauge(limit_bytes), kill, warn, time.monotonic())
        with self._changed:
            self._watches[pid] = watch
            self._start()
            self._changed.notify()

    def unwatch(self, pid: int) -> Reading | None:
        """End a watch; afterwards the counter may be closed.

        Returns:
            The reading that killed the process, with the highest footprint seen until it was gone,
            or None for a process that the sampler did not kill.
        """
        with self._changed:
            watch = self._watches.pop(pid, None)
        if watch is None or watch.killed is None:
            return None
        return replace(watch.killed, footprint_bytes=watch.peak_bytes)

    def stop(self) -> None:
        """End the thread; bounded. A stopped sampler watches nothing more."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(STOP_LIMIT_S)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="memory-sampler", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        with self._changed:
            while not self._is_stopped:
                for watch in self._watches.values():
                    if watch.due_s <= time.monotonic():
                        self._sample(watch)
                self._changed.wait(self._pause_s())

    def _pause_s(self) -> float | None:
        """Return the time to the next reading, None while nothing is watched."""
        dues_s = [watch.due_s for watch in self._watches.values()]
        return max(0.0, min(dues_s) - time.monotonic()) if dues_s else None

    def _sample(self, watch: _Watch) -> None:
        now_s = time.monotonic()
        lag_s = now_s - watch.due_s
        self._lag = SamplerLag(self._lag.sample_count + 1, max(self._lag.worst_s, lag_s))
        footprint_bytes = watch.counter.footprint_bytes() or 0  # gone: `unwatch` follows
        watch.peak_bytes = max(watch.peak_bytes, footprint_bytes)
        decision = watch.gauge.observe(footprint_bytes, now_s)
        if decision.action is not Action.NONE:
            cpu_time_s = watch.counter.cpu_time_s() or 0.0
            self._act(watch, decision.action, Reading(footprint_bytes, lag_s, cpu_time_s))
        watch.due_s = now_s + decision.delay_s

    def _act(self, watch: _Watch, action: Action, reading: Reading) -> None:
        if action is Action.WARN:
            self._post(watch, reading)
            return
        watch.killed = reading  # the lock is held: `unwatch` comes before both or after both
        watch.kill()

    def _post(self, watch: _Watch, reading: Reading) -> None:
        try:
            self._loop.call_soon_threadsafe(watch.warn, reading)
        except RuntimeError:  # the loop is closed: nobody is left to be warned
            self._is_stopped = True
