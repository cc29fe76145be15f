"""What memory costs under the kernel of a virtual phone: footprints, warnings, kills, reports."""

from __future__ import annotations

import json
import signal
import sys
from typing import TYPE_CHECKING

import anyio
import pytest

from orchestrator.virtual.kernel import (
    ForegroundChange,
    LowPowerChange,
    MemoryWarning,
)
from tests.virtual.kernel.programs import ECHO

if TYPE_CHECKING:
    from tests.virtual.kernel.conftest import Phone


async def test_footprint_is_dirty_memory_in_phone_bytes_and_cpu_time_grows(phone: Phone) -> None:
    source = """
import mmap, sys, time
print("ready", flush=True)
sys.stdin.readline()
block = mmap.mmap(-1, 16 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
block.write(b"x" * 4096 * 4096)
print("grown", flush=True)
sys.stdin.read()
"""
    pid, watcher = await phone.run(source)
    await watcher.line("ready")
    before = phone.kernel.footprint_bytes(pid)
    cpu_before_s = phone.kernel.cpu_time_s(pid)
    phone.kernel.send_condition(pid, MemoryWarning())
    await watcher.line("grown")
    after = phone.kernel.footprint_bytes(pid)
    cpu_after_s = phone.kernel.cpu_time_s(pid)
    assert before is not None
    assert after is not None
    assert cpu_before_s is not None
    assert cpu_after_s is not None
    # The written block, and perhaps the bytes object it was written from.
    assert 16 * 32 << 20 <= after - before < 34 * 32 << 20
    assert 0 < cpu_before_s < cpu_after_s < 30


async def test_shared_memory_does_not_count(phone: Phone) -> None:
    source = """
import mmap, sys
block = mmap.mmap(-1, 64 << 20)
for at in range(0, 64 << 20, 4096):
    block[at] = 1
print("ready", flush=True)
sys.stdin.read()
"""
    pid, watcher = await phone.run(source)
    await watcher.line("ready")
    footprint_bytes = phone.kernel.footprint_bytes(pid)
    assert footprint_bytes is not None
    assert footprint_bytes < 32 * 32 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="huge pages are turned off on Linux")
async def test_apps_live_without_huge_pages(phone: Phone) -> None:
    pid, watcher = await phone.run(ECHO)
    await watcher.line("ready")
    status = await anyio.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    assert "THP_enabled:\t0" in status


GROW = """
import mmap, select, sys, time
STEP = 256 * 1024
blocks = []

def grow():
    block = mmap.mmap(-1, STEP, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, STEP, 4096):
        block[at] = 1
    blocks.append(block)
    time.sleep(0.0005)

while not select.select([0], [], [], 0)[0]:
    grow()
print("told", sys.stdin.readline().strip(), flush=True)
sys.stdin.readline()
while True:
    grow()
"""


async def grown_to_death(phone: Phone, name: str = "SoakHarness") -> int:
    """Run an app that grows until it is warned, and on the next condition to its death."""
    pid, watcher = await phone.run(GROW, name=name)
    await watcher.line('told {"n":1,"event":"memory_warning"}')
    phone.kernel.send_condition(pid, LowPowerChange(value=True))
    assert await watcher.ended() == (None, signal.SIGKILL)
    return pid


async def test_an_app_is_warned_and_then_killed_at_its_limit_with_a_report(phone: Phone) -> None:
    pid = await grown_to_death(phone)
    (report,) = phone.reports()
    assert report.name.startswith("JetsamEvent-")
    body = json.loads(report.read_text().split("\n", 1)[1])
    (victim,) = [each for each in body["processes"] if "reason" in each]
    assert (victim["name"], victim["pid"]) == ("SoakHarness", pid)
    assert victim["rpages"] * 16384 == phone.facts.limit_bytes
    assert victim["cpuTime"] > 0
    (text,) = phone.log_of("kernel")
    assert text == (
        f"memorystatus: killing_specific_process pid {pid} [SoakHarness]"
        f" (per-process-limit 100) {2867 * 1024}KB"
    )
    assert phone.log_of("osanalyticshelper")[0].endswith(report.name)


async def test_the_event_log_keeps_what_was_really_seen(phone: Phone) -> None:
    await grown_to_death(phone)
    warning, *_, kill = phone.events
    limit_bytes = phone.facts.limit_bytes
    assert warning.kind == "warning"
    assert 0.92 * limit_bytes <= warning.footprint_bytes < limit_bytes
    assert warning.overshoot_bytes == 0
    assert kill.kind == "kill"
    assert kill.footprint_bytes >= limit_bytes
    # It grows by at most 0.5 GB/s: 32 MiB of the host are far more than sampler and kill need.
    assert kill.overshoot_bytes <= (32 << 20) * phone.facts.memory_scale
    assert kill.report == phone.reports()[0].name
    assert phone.kernel.sampler_lag.sample_count > 10
    assert phone.kernel.sampler_lag.worst_s >= kill.lag_s >= 0


async def test_beyond_the_quota_a_kill_leaves_no_report(phone: Phone) -> None:
    await grown_to_death(phone)
    await grown_to_death(phone, name="Second")
    assert len(phone.reports()) == 1
    assert [event.report for event in phone.events if event.kind == "kill"][1] is None


async def test_an_app_can_be_killed_for_the_phones_sake_below_its_limit(phone: Phone) -> None:
    pid, watcher = await phone.run(ECHO)
    await watcher.line("ready")
    phone.kernel.send_condition(pid, ForegroundChange(value=False))
    phone.kernel.reclaim(pid)
    assert await watcher.ended() == (None, signal.SIGKILL)
    (report,) = phone.reports()
    body = json.loads(report.read_text().split("\n", 1)[1])
    (victim,) = [each for each in body["processes"] if "reason" in each]
    assert victim["reason"] == "vm-pageshortage"
    assert victim["states"] == ["background"]
    assert 0 < victim["rpages"] * 16384 < phone.facts.limit_bytes


async def test_the_quota_is_for_the_per_process_limit_alone(phone: Phone) -> None:
    await grown_to_death(phone)
    pid, watcher = await phone.run(ECHO, name="Second")
    phone.kernel.reclaim(pid)
    await watcher.ended()
    assert len(phone.reports()) == 2
