"""Scripts, repetition under a seed, undoing, and the event log."""

from __future__ import annotations

import asyncio
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.virtual.events import Event, EventLog
from orchestrator.virtual.farm import ServeOptions, running_farm
from orchestrator.virtual.faults.base import FaultError
from orchestrator.virtual.faults.engine import scripted
from orchestrator.virtual.faults.vocabulary import fault_of
from tests.virtual.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.virtual.farm import Farm

SCRIPT = (
    {"phone": "vp-01", "at_s": 0.01, "kind": "mute", "service": "com.apple.afc", "for_s": 0.02},
    {"phone": "vp-02", "at_s": 0.03, "kind": "junk", "service": "com.apple.afc"},
    {"phone": "all", "at_s": 0.09, "kind": "lock"},
    {"phone": "vp-01", "at_s": 0.12, "kind": "watchdog"},
)


def lasting(event: Event) -> tuple[object, ...]:
    """Return what two runs have equal: all but the time."""
    return (event.number, event.phone, event.kind, tuple(event.facts.items()))


async def run_script(state: Path, seed: int) -> tuple[list[tuple[object, ...]], int]:
    phones = [("iPhone 14", "18.5"), ("iPhone 16", "18.6")]
    script = tuple(scripted(line) for line in SCRIPT)
    options = ServeOptions(phones=phones, folder=state, seed=seed, faults=script)
    async with running_farm(options) as farm:
        await until(lambda: any(e.kind == "fault_refused" for e in farm.events.since()))
        junk = farm.phones[1].settings.tampering["com.apple.afc"].seed
        return [lasting(event) for event in farm.events.since()], junk


async def test_a_script_gives_the_same_events_and_the_same_chance_again(state: Path) -> None:
    first, first_junk = await run_script(state, 5)
    again, again_junk = await run_script(state, 5)
    _, other_junk = await run_script(state, 6)
    assert first == again
    assert first_junk == again_junk != other_junk
    kinds = [(phone, kind) for _, phone, kind, _ in first]
    assert kinds == [
        ("vp-01", "plugged_in"),
        ("vp-02", "plugged_in"),
        ("vp-01", "fault"),
        ("vp-01", "fault_over"),
        ("vp-02", "fault"),
        ("vp-01", "fault"),
        ("vp-02", "fault"),
        ("vp-01", "fault"),
        ("", "fault_refused"),
    ] or kinds[3:5] == [("vp-02", "fault"), ("vp-01", "fault_over")]


async def test_a_script_can_count_from_the_launch_of_an_app(state: Path) -> None:
    line = {"phone": "all", "at_s": 0.0, "kind": "low_power", "since": "launch"}
    options = ServeOptions(
        phones=[("iPhone 14", "18.5"), ("iPhone 16", "18.6")],
        folder=state,
        faults=(scripted(line),),
    )
    async with running_farm(options) as farm:
        await asyncio.sleep(0.02)
        assert farm.faults.active(farm.phones[0]) == []
        await farm.phones[0].machine.launch("dev.fleet.virtual.notepad", {}, [], kill_existing=True)
        await until(lambda: farm.faults.active(farm.phones[0]) == ["low_power"])
        assert farm.faults.active(farm.phones[1]) == []


async def test_a_script_for_a_phone_that_is_not_there_is_refused(state: Path) -> None:
    line = scripted({"phone": "vp-09", "at_s": 1, "kind": "unplug"})
    options = ServeOptions(phones=[("iPhone 14", "18.5")], folder=state, faults=(line,))
    with pytest.raises(FaultError, match="there are vp-01"):
        async with running_farm(options):
            pass


async def test_faults_are_undone_in_the_reverse_order_or_by_kind(farm: Farm) -> None:
    for kind in ("lock", "low_power", "ddi_unmounted"):
        await farm.faults.begin("vp-01", fault_of(kind, {}))
    phone = farm.phones[0]
    assert await farm.faults.mend("vp-01", "low_power") == 1
    assert farm.faults.active(phone) == ["lock", "ddi_unmounted"]
    assert await farm.faults.mend(phone.udid) == 2
    assert (phone.settings.locked, phone.settings.image_mounted) == (False, True)
    over = [event.facts["kind"] for event in farm.events.since() if event.kind == "fault_over"]
    assert over == ["low_power", "ddi_unmounted", "lock"]
    assert await farm.faults.mend("all") == 0


async def test_a_fault_that_lasts_a_while_ends_by_itself(farm: Farm) -> None:
    await farm.faults.begin("vp-01,vp-02", fault_of("low_power", {}), for_s=0.02)
    assert all(phone.settings.low_power for phone in farm.phones)
    await until(lambda: not any(phone.settings.low_power for phone in farm.phones))


async def test_a_farm_that_ends_in_the_middle_of_faults_ends(state: Path) -> None:
    options = ServeOptions(phones=[("iPhone 14", "18.5")], folder=state)
    async with running_farm(options) as farm:
        await farm.faults.begin("vp-01", fault_of("heat", {}))
        await farm.faults.begin("vp-01", fault_of("usbmux_hang", {}), for_s=60)
        await farm.faults.begin("vp-01", fault_of("reports", {"delay_s": 60}))


def test_the_log_numbers_events_and_writes_them_to_its_file() -> None:
    file, now = io.StringIO(), iter([10.0, 10.5, 12.0])
    log = EventLog(file, lambda: next(now))
    seen: list[Event] = []
    log.listeners.add(seen.append)
    log.record("vp-01", "unplugged")
    log.record("", "fault_refused", why="<b>\ud800", count=2)
    lines: list[dict[str, Any]] = [json.loads(line) for line in file.getvalue().splitlines()]
    assert lines == [
        {"n": 1, "t_s": 0.5, "phone": "vp-01", "event": "unplugged"},
        {"n": 2, "t_s": 2.0, "phone": "", "event": "fault_refused", "why": "<b>\ud800", "count": 2},
    ]
    assert [event.number for event in seen] == [1, 2]
    assert [event.kind for event in log.since(1)] == ["fault_refused"]
