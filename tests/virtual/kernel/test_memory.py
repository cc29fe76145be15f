"""The sampler's thread, with readings that the test sets."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import anyio
import pytest

from orchestrator.virtual.kernel.memory import MemorySampler, Reading
from tests.virtual.kernel.conftest import WAIT_LIMIT_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LIMIT = 100_000_000


class ScriptedCounter:
    """A process whose footprint the test sets."""

    def __init__(self) -> None:
        self.now_bytes: int | None = 0
        self.threads: set[int] = set()
        self.readings = threading.Semaphore(0)

    def footprint_bytes(self) -> int | None:
        self.threads.add(threading.get_ident())
        self.readings.release()
        return self.now_bytes

    def cpu_time_s(self) -> float | None:
        return 1.5

    def set(self, footprint_bytes: int) -> None:
        """Set the footprint and wait until it was read."""
        while self.readings.acquire(blocking=False):
            pass
        self.now_bytes = footprint_bytes
        for _ in range(2):  # the first may have been under way
            assert self.readings.acquire(timeout=WAIT_LIMIT_S)

    def close(self) -> None:
        """Nothing is held."""


class Watched:
    """One watch of a sampler, and what came of it."""

    def __init__(self, sampler: MemorySampler, pid: int) -> None:
        self.counter = ScriptedCounter()
        self.killed = threading.Event()
        self.warnings: list[Reading] = []
        self.warned = asyncio.Event()
        sampler.watch(pid, self.counter, LIMIT, kill=self.killed.set, warn=self._warn)

    def _warn(self, reading: Reading) -> None:
        self.warnings.append(reading)
        self.warned.set()


@pytest.fixture
async def sampler() -> AsyncIterator[MemorySampler]:
    made = MemorySampler(asyncio.get_running_loop())
    yield made
    made.stop()


async def test_a_warning_comes_in_the_event_loop(sampler: MemorySampler) -> None:
    watched = Watched(sampler, 7)
    watched.counter.now_bytes = 93_000_000
    with anyio.fail_after(WAIT_LIMIT_S):
        await watched.warned.wait()
    assert watched.warnings[0].footprint_bytes == 93_000_000
    assert watched.warnings[0].cpu_time_s == 1.5
    assert threading.get_ident() not in watched.counter.threads


async def test_the_kill_does_not_wait_for_the_event_loop(sampler: MemorySampler) -> None:
    watched = Watched(sampler, 7)
    watched.counter.now_bytes = LIMIT
    assert watched.killed.wait(WAIT_LIMIT_S)  # blocks the loop: on purpose


async def test_the_highest_footprint_between_kill_and_death_is_kept(sampler: MemorySampler) -> None:
    watched = Watched(sampler, 7)
    watched.counter.now_bytes = LIMIT
    assert watched.killed.wait(WAIT_LIMIT_S)
    watched.counter.set(LIMIT + 5)
    watched.counter.set(LIMIT - 5)
    reading = sampler.unwatch(7)
    assert reading is not None
    assert reading.footprint_bytes == LIMIT + 5


async def test_a_process_that_was_not_killed_has_no_deciding_reading(
    sampler: MemorySampler,
) -> None:
    Watched(sampler, 7)
    assert sampler.unwatch(7) is None
    assert sampler.unwatch(7) is None


async def test_one_thread_watches_every_process(sampler: MemorySampler) -> None:
    first, second = Watched(sampler, 7), Watched(sampler, 8)
    for watched in (first, second):
        watched.counter.now_bytes = LIMIT
        assert watched.killed.wait(WAIT_LIMIT_S)
    assert first.counter.threads == second.counter.threads
    assert len(first.counter.threads) == 1


async def test_a_stopped_sampler_reads_nothing_more(sampler: MemorySampler) -> None:
    watched = Watched(sampler, 7)
    sampler.stop()
    watched.counter.now_bytes = LIMIT
    await anyio.sleep(0.06)  # longer than the longest time between two readings
    assert not watched.killed.is_set()


def test_a_warning_for_a_loop_that_is_gone_ends_the_thread() -> None:
    async def start() -> tuple[MemorySampler, Watched]:
        made = MemorySampler(asyncio.get_running_loop())
        return made, Watched(made, 7)

    sampler, watched = asyncio.run(start())
    watched.counter.now_bytes = 93_000_000
    for thread in threading.enumerate():
        if thread.name == "memory-sampler":
            thread.join(WAIT_LIMIT_S)
            assert not thread.is_alive()
    assert watched.warnings == []
    sampler.stop()
