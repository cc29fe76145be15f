"""Telemetry of a hostile phone is judged and never ends the judge; memory stays bounded."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.domain.errors import RunDirectoryError
from orchestrator.verdict.judge import judge
from tests.verdict.host_side import case_of, check_of, encode, failures, plan_of
from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import Row, Spec

if TYPE_CHECKING:
    from collections.abc import Iterator

HUGE = (1 << 63) - 1
NUMBERS = [-1, 0, 1, HUGE, -HUGE, 1 << 64, 10**4000]
SMALL = encode(App(Spec(stop_after=60)).run())


def with_value(line: bytes, key: str, value: object) -> bytes:
    return json.dumps({**json.loads(line), key: value}).encode() + b"\n"


@settings(max_examples=100, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_number_in_any_field_is_judged(data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(SMALL) - 1))
    row = cast("Row", json.loads(SMALL[place]))
    key = data.draw(st.sampled_from(sorted(row)))
    number = data.draw(st.sampled_from(NUMBERS))
    value = [number] * 3 if isinstance(row[key], list) else number
    lines = list(SMALL)
    lines[place] = with_value(lines[place], key, value)
    verdict = judge(case_of(), lines).verdict
    assert verdict.outcome in {"FAIL", "ERROR", "PASS"}
    assert msgspec.json.encode(verdict)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(order=st.permutations(range(len(SMALL))))
def test_any_order_of_lines_is_judged(order: list[int]) -> None:
    judgement = judge(case_of(), [SMALL[place] for place in order])
    assert order == sorted(order) or "telemetry.complete" in failures(judgement)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(cut=st.integers(0, sum(map(len, SMALL))))
def test_telemetry_cut_at_any_byte_is_judged(cut: int) -> None:
    lines = b"".join(SMALL)[:cut].splitlines(keepends=True)
    assert judge(case_of(Spec(stop_after=60)), lines).verdict.explanation


@pytest.mark.parametrize("line", [b"", b"[" * 5000, b'{"kind":"tokens"}', b"\x00" * 100])
def test_garbage_alone_is_judged(line: bytes) -> None:
    judgement = judge(case_of(), [line + b"\n"] * 3)
    assert check_of(judgement, "telemetry.complete").result == "fail"


@pytest.mark.parametrize(("key", "digits"), [("seq", 30), ("unknown", 30), ("unknown", 4200)])
def test_a_number_longer_than_64_bits_makes_no_record(key: str, digits: int) -> None:
    lines = list(SMALL)
    lines[3] = with_value(lines[3], key, 10**digits)
    check = check_of(judge(case_of(), lines), "telemetry.complete")
    assert (check.reason or "").startswith("a line is not a record")


def test_a_seed_may_use_all_64_bits() -> None:
    spec = Spec(seed=(1 << 64) - 1)
    assert not failures(judge(case_of(spec), encode(App(spec).run())))


def test_the_words_of_a_phone_are_shown_on_one_bounded_line() -> None:
    records = App().run()
    for row in records:
        if row["kind"] == "evict":
            row["reason"] = "\x1b[31m\n" + "x" * 20_000
        if row["kind"] == "breadcrumb":
            row["detail"] = "\u202e<script>\n" * 1000
    verdict = judge(case_of(), encode(records)).verdict
    texts = [check.reason or "" for check in verdict.checks]
    for text in [*texts, verdict.explanation, verdict.last_breadcrumb or ""]:
        assert text.isprintable()
        assert len(text) < 500


def test_lists_of_unequal_length_are_a_difference() -> None:
    records = App().run()
    tokens = next(row for row in records if row["kind"] == "tokens")
    tokens["n"] = cast("list[int]", tokens["n"]) * 2
    assert "trim.on-schedule" in failures(judge(case_of(), encode(records)))


@pytest.mark.parametrize(
    ("key", "value"), [("budget", 0), ("budget", HUGE), ("chunk", 0), ("vocab", 1), ("pin_ids", [])]
)
def test_a_hello_with_impossible_rules_is_a_difference(key: str, value: object) -> None:
    records = App().run()
    records[0][key] = value
    assert "trim.on-schedule" in failures(judge(case_of(), encode(records)))


def test_a_plan_without_a_readable_scenario_is_refused() -> None:
    with pytest.raises(RunDirectoryError, match=r"plan\.json: scenario"):
        judge(case_of(plan=plan_of(Spec(), scenario={"seed": "x"})), [])


def lines_of(launches: int, spec: Spec) -> Iterator[bytes]:
    """Yield a long run whose lines are never all in memory: launch after launch."""
    lines = encode(App(spec).run())
    for number in range(launches):
        name = f"{number:08d}-d9cb-469f-a165-70867728950e".encode()
        yield from (line.replace(b"0f8fad5b-d9cb-469f-a165-70867728950e", name) for line in lines)


def endless(turns: int) -> Iterator[bytes]:
    """Yield a launch that never trims, never shows a notice and warns all the time."""
    hello, *rest = App().run()
    yield encode([hello])[0]
    wanted = ("tokens", "prefill", "memory_warning", "trim", "turn_start", "state")
    rows = [row for row in rest if row["kind"] in wanted]
    seq = 1
    for turn in range(turns):
        for row in rows:
            seq += 1
            fresh = {**row, "seq": seq, "id": seq, "n": row.get("n", seq)}
            if row["kind"] in ("turn_start", "state"):
                fresh.update({"turn": turn, "id": turn})
            if row["kind"] == "memory_warning":
                fresh["n"] = seq
            yield json.dumps(fresh).encode() + b"\n"


def peak_bytes(lines: Iterator[bytes]) -> int:
    case = case_of()
    tracemalloc.start()
    try:
        judge(case, lines)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (lambda: lines_of(1, Spec()), lambda: lines_of(10, Spec())),
        (lambda: endless(2), lambda: endless(20)),
    ],
    ids=["launch after launch", "a phone that keeps no rule"],
)
def test_memory_does_not_grow_with_the_run(short: object, long: object) -> None:
    make_short, make_long = cast("list[type]", [short, long])
    peak_bytes(make_short())
    assert peak_bytes(make_long()) < peak_bytes(make_short()) * 1.5 + 500_000
