"""Parts of the stand-in app that decide or count, one by one."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.memory_class import MemoryClass
from orchestrator.harness.standin.ballast import Ballast
from orchestrator.harness.standin.clock import LaunchClock, Pace
from orchestrator.harness.standin.commands import Clerk
from orchestrator.harness.standin.conditions import deliver
from orchestrator.harness.standin.defects import Defect, UnknownDefectError, parse_defect
from orchestrator.harness.standin.fields import FieldError, Fields
from orchestrator.harness.standin.journal import Journal, OversizeRecordError
from orchestrator.harness.standin.memory import PAGE_BYTES, MemoryGauge, Region, touched_region
from orchestrator.harness.standin.packages import WitnessModel
from orchestrator.harness.standin.planning import choose_quantization, plan_budget
from orchestrator.harness.standin.pressure import Pressure
from orchestrator.harness.standin.scenario import BallastSpan, Policy
from tests.harness.standin_process import TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MIB = 1024**2
MODEL = WitnessModel("", "int4", 4, 0, 64, 4096, 32000, 2, 0, 1, 64)
POLICY = Policy(
    {MemoryClass.GB6: 1024, MemoryClass.GB8: 2048}, None, None, "bos", "refuse", 20, False
)


# Budget and quantization


@pytest.mark.parametrize(
    ("memory_class", "quantization"),
    [(MemoryClass.GB6, "int4"), (MemoryClass.GB8, "int8"), (MemoryClass.GB12, "int8")],
)
def test_8_bit_weights_begin_with_the_8_gb_class(
    memory_class: MemoryClass, quantization: str
) -> None:
    assert choose_quantization(memory_class) == quantization


@pytest.mark.parametrize(
    ("changes", "capacity", "budget"),
    [
        ({}, 4096, 1024),
        ({"scenario_budget_tokens": 512}, 4096, 512),
        ({"kv_ceiling_tokens": 700}, 4096, 700),
        ({"scenario_budget_tokens": 5000}, 4096, 1024),
        ({}, 256, 256),
    ],
)
def test_the_budget_is_the_lowest_of_its_inputs(
    changes: dict[str, int], capacity: int, budget: int
) -> None:
    policy = dataclasses.replace(POLICY, **changes)  # type: ignore[arg-type]
    model = dataclasses.replace(MODEL, capacity=capacity)
    assert plan_budget(MemoryClass.GB6, policy, model).budget == budget


def test_a_class_without_a_budget_is_refused() -> None:
    with pytest.raises(FieldError, match="has no 12gb"):
        plan_budget(MemoryClass.GB12, POLICY, MODEL)


def test_a_pin_over_a_quarter_of_the_budget_is_refused_at_plan_time() -> None:
    policy = dataclasses.replace(POLICY, scenario_budget_tokens=3)
    with pytest.raises(FieldError, match="over a quarter of the budget 3"):
        plan_budget(MemoryClass.GB6, policy, MODEL)


# Defects


@pytest.mark.parametrize("text", ["nope", "jetsam:", "jetsam:-1", "jetsam:many", ":5"])
def test_a_defect_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UnknownDefectError):
        parse_defect(text)


def test_jetsam_leaks_from_token_600_unless_told_otherwise() -> None:
    assert parse_defect("jetsam").leak_from_token == 600
    assert parse_defect("jetsam:40").leak_from_token == 40
    assert parse_defect("no-evict").leak_from_token is None


@pytest.mark.parametrize("reported", [8_021_032_960, 5_917_753_344])
def test_the_naive_comparison_is_false_on_every_8_gb_phone(reported: int) -> None:
    assert parse_defect("naive-8gib").memory_class(reported) is MemoryClass.GB6


def test_a_healthy_app_refuses_a_phone_below_5_gib() -> None:
    assert Defect().memory_class(4 * 1024**3) is None


# Memory and ballast


def test_touched_pages_count_and_unmapped_ones_do_not() -> None:
    gauge = MemoryGauge(2, None)
    before = gauge.read()
    region = touched_region(8 * MIB)
    grown = gauge.read()
    region.release()
    after = gauge.read()
    assert grown.host_bytes - before.host_bytes >= 8 * MIB
    assert after.host_bytes - before.host_bytes < MIB
    assert grown.footprint == 2 * grown.host_bytes
    assert (grown.available, gauge.peak) == (0, grown.footprint)


def test_mapped_memory_is_not_dirty_before_it_is_touched() -> None:
    gauge = MemoryGauge(1, None)
    before = gauge.read().host_bytes
    region = Region(8 * MIB)
    assert gauge.read().host_bytes - before < MIB
    region.touch(3 * PAGE_BYTES - 1)
    assert region.touched_bytes == 3 * PAGE_BYTES
    region.release()


def ballast_of(span: BallastSpan) -> tuple[Ballast, list[str], int]:
    """A ballast that has 100 pages to the limit, its breadcrumbs, and those pages."""
    gauge = MemoryGauge(1, None)
    missing = 100 * PAGE_BYTES
    gauge.limit_bytes = gauge.read().footprint + missing
    crumbs: list[str] = []
    return Ballast(span, gauge, lambda about, _: crumbs.append(about)), crumbs, missing


def test_ballast_grows_by_equal_steps_at_both_ends_included_and_then_stays() -> None:
    ballast, crumbs, missing = ballast_of(BallastSpan(10, 19, 100, 5))
    held = []
    for ordinal in range(9, 24):
        ballast.after_token(ordinal)
        held.append(ballast.host_bytes)
    steps = [b - a for a, b in itertools.pairwise(held[:11])]
    assert held[0] == 0
    assert max(steps) - min(steps) <= PAGE_BYTES
    assert abs(held[10] - missing) <= 20 * PAGE_BYTES
    assert held[10:] == [held[10]] * 5
    assert crumbs == ["ballast"]
    ballast.after_token(24)
    assert ballast.host_bytes == 0
    assert ballast.after_token(25) is False


def test_ballast_does_not_grow_after_its_release() -> None:
    ballast, _, _ = ballast_of(BallastSpan(1, 10, 100, 100))
    ballast.after_token(1)
    ballast.release()
    assert ballast.after_token(2) is False
    assert ballast.host_bytes == 0


def test_an_eviction_before_the_ballast_begins_does_not_cancel_it() -> None:
    ballast, _, _ = ballast_of(BallastSpan(5, 6, 100, 100))
    ballast.release()
    assert ballast.after_token(5) is True
    ballast.release()


# Clock


class SteppedClock(LaunchClock):
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        super().__init__()
        self.at_ns = 0

    def now_ns(self) -> int:
        return self.at_ns

    def sleep_until_ns(self, at_ns: int) -> None:
        self.at_ns = max(self.at_ns, at_ns)


def test_a_late_step_is_made_up_for_by_the_next_one() -> None:
    clock = SteppedClock()
    pace = Pace(clock)
    pace.wait(clock.now_ns(), 0.010)
    clock.at_ns += 4_000_000
    pace.wait(clock.now_ns(), 0.010)
    assert clock.at_ns == 20_000_000


def test_a_long_pause_is_not_made_up_for() -> None:
    clock = SteppedClock()
    pace = Pace(clock)
    pace.wait(clock.now_ns(), 0.010)
    clock.at_ns += 5_000_000_000
    pace.wait(clock.now_ns(), 0.010)
    assert clock.at_ns == 5_020_000_000


# Journal


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "j.ndjson", "launch", LaunchClock())


def test_every_32nd_record_carries_the_chain_of_the_lines_since_the_one_before(
    journal: Journal,
) -> None:
    for _ in range(64):
        journal.append("notice", {})
    lines = journal.path.read_bytes().splitlines(keepends=True)
    chains = {number: json.loads(line).get("chain") for number, line in enumerate(lines, 1)}
    assert [number for number, chain in chains.items() if chain] == [32, 64]
    assert chains[32] == hashlib.sha256(b"".join(lines[:31])).hexdigest()[:16]
    assert chains[64] == hashlib.sha256(b"".join(lines[32:63])).hexdigest()[:16]


def test_a_record_over_64_kib_is_refused_and_leaves_no_gap(journal: Journal) -> None:
    with pytest.raises(OversizeRecordError):
        journal.append("turn_start", {"ids": "x" * 70_000})
    assert journal.append("notice", {}) == 1
    assert journal.path.read_bytes().count(b"\n") == 1


def test_a_resume_begins_at_the_byte_after_its_record(journal: Journal) -> None:
    for _ in range(3):
        journal.append("notice", {})
    first = journal.path.read_bytes().index(b"\n") + 1
    assert [journal.offset_after(seq) for seq in (0, 1, 3)] == [0, first, journal.size_bytes]
    with pytest.raises(ValueError, match="no record 4"):
        journal.offset_after(4)


def test_a_journal_is_never_written_over(journal: Journal) -> None:
    with pytest.raises(FileExistsError):
        Journal(journal.path, "launch", LaunchClock())


# Pressure


def test_the_end_of_the_soak_wakes_who_waits_for_the_foreground() -> None:
    pressure = Pressure()
    pressure.set_foreground(False, lambda: None)
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(pressure.wait_for_foreground()))
    waiter.start()
    pressure.stop("stopped")
    waiter.join(5)
    assert answers == [False]


def test_the_first_reason_to_stop_stays() -> None:
    pressure = Pressure()
    pressure.stop("completed")
    pressure.stop("stopped")
    assert pressure.stop_reason == "completed"


def test_a_move_that_changes_nothing_is_no_record() -> None:
    pressure, records = Pressure(), list[str]()
    pressure.set_foreground(True, lambda: records.append("again"))
    assert records == []


# Hostile input


class Silent:
    """A target, and a desk, that must not be reached by garbage."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        raise AssertionError(f"garbage reached {name}")


@given(st.binary(max_size=200))
def test_no_bytes_on_the_conditions_channel_raise(line: bytes) -> None:
    deliver(line, Silent())


@given(st.binary(max_size=200) | st.from_regex(rb'\{"id":1,"command":"(start|stop)".{0,9}\}'))
def test_no_bytes_before_hello_are_answered(line: bytes) -> None:
    answer = Clerk(Silent(), TOKEN).answer(line)  # type: ignore[arg-type]
    assert (answer.reply, answer.closes) == (None, False)


@pytest.mark.parametrize("value", [None, True, "7", 7.0, 11, -1])
def test_an_integer_is_an_integer_within_its_bounds(value: object) -> None:
    with pytest.raises(FieldError, match=r"scenario\.seed must be an integer from 0 to 10"):
        Fields({"seed": value}, "scenario").integer("seed", 0, 10)


@pytest.mark.parametrize("value", [0, -1.5, True, "1", float("inf"), float("nan"), 1e300])
def test_a_number_is_finite_and_above_0(value: object) -> None:
    with pytest.raises(FieldError, match="must be a number above 0"):
        Fields({"duration_s": value}, "scenario").positive("duration_s")
