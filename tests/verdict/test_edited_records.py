"""Any single edit of what matters in a healthy run's records is caught by some check."""

from __future__ import annotations

import copy
from functools import cache
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.verdict.judge import judge
from tests.verdict.host_side import case_of, encode, failures
from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import Row, Spec

if TYPE_CHECKING:
    from collections.abc import Sequence

SHORT = Spec(stop_after=220)
ORDERED = ("turn_start", "prefill", "tokens", "trim", "evict", "state", "turn_end")
NEEDED = (*ORDERED, "notice", "hello", "bye", "memory_warning")
COUNTS = [
    ("prefill", "start"),
    ("prefill", "state"),
    ("tokens", "state"),
    ("tokens", "turn"),
    ("trim", "before"),
    ("trim", "kept"),
    ("trim", "pinned"),
    ("trim", "k"),
    ("trim", "state"),
    ("evict", "before"),
    ("evict", "kept"),
    ("evict", "k"),
    ("evict", "state"),
    ("notice", "for_seq"),
    ("state", "id"),
    ("turn_start", "carried"),
    ("turn_start", "turn"),
    ("turn_start", "conversation"),
    ("turn_start", "limit"),
    ("turn_end", "generated"),
    ("turn_end", "consumed"),
    ("turn_end", "turn"),
    ("memory_warning", "n"),
]
LISTS = [
    ("prefill", "ids"),
    ("tokens", "ids"),
    ("tokens", "n"),
    ("turn_start", "prompt_ids"),
    ("turn_start", "used_ids"),
    ("evict", "warnings"),
]
TEXTS = [
    ("prefill", "purpose", "resume"),
    ("trim", "reason", "low_memory"),
    ("evict", "reason", "background"),
    ("turn_end", "reason", "cancelled"),
    ("turn_end", "reason", "memory_pressure"),
]


@cache
def healthy() -> tuple[Row, ...]:
    return tuple(App(SHORT).run())


def caught(records: Sequence[Row]) -> set[str]:
    return failures(judge(case_of(SHORT), encode(records)))


def rows_of(kind: str) -> list[int]:
    return [place for place, row in enumerate(healthy()) if row["kind"] == kind]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_changed_count_is_caught(data: st.DataObject) -> None:
    kind, key = data.draw(st.sampled_from(COUNTS))
    place = data.draw(st.sampled_from(rows_of(kind)))
    shift = data.draw(st.sampled_from([-2, -1, 1, 2, 1 << 62]))
    records = copy.deepcopy(list(healthy()))
    records[place][key] = cast("int", records[place][key]) + shift
    assert caught(records), f"{kind}.{key} of record {place + 1} shifted by {shift}"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_changed_list_is_caught(data: st.DataObject) -> None:
    kind, key = data.draw(st.sampled_from(LISTS))
    place = data.draw(st.sampled_from(rows_of(kind)))
    records = copy.deepcopy(list(healthy()))
    items = cast("list[int]", records[place][key])
    index = data.draw(st.integers(0, len(items) - 1))
    if data.draw(st.booleans()):
        items[index] += 1
    else:
        del items[index]
    assert caught(records), f"{kind}.{key}[{index}] of record {place + 1}"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_two_ids_that_change_places_are_caught(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["prefill", "tokens"]))
    place = data.draw(st.sampled_from([p for p in rows_of(kind) if len(ids_of(p)) > 1]))
    records = copy.deepcopy(list(healthy()))
    items = cast("list[int]", records[place]["ids"])
    index = data.draw(st.integers(0, len(items) - 2))
    items[index], items[index + 1] = items[index + 1], items[index]
    assert caught(records)


def ids_of(place: int) -> list[int]:
    return cast("list[int]", healthy()[place]["ids"])


@pytest.mark.parametrize(("kind", "key", "value"), TEXTS)
def test_a_changed_word_is_caught(kind: str, key: str, value: str) -> None:
    for place in [p for p in rows_of(kind) if healthy()[p][key] != value][:-1]:
        records = copy.deepcopy(list(healthy()))
        records[place][key] = value
        assert caught(records), f"{kind}.{key} of record {place + 1}"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_record_that_is_left_out_is_caught_although_seq_and_chain_fit(
    data: st.DataObject,
) -> None:
    places = [p for p, row in enumerate(healthy()) if row["kind"] in NEEDED]
    # The state that is live at the farewell goes with the process.
    places.remove(max(rows_of("state")))
    place = data.draw(st.sampled_from(places))
    records = list(healthy())
    del records[place]
    assert caught(records), f"record {place + 1}, {healthy()[place]['kind']}"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_record_that_stands_twice_is_caught_although_seq_and_chain_fit(
    data: st.DataObject,
) -> None:
    places = [p for p, row in enumerate(healthy()) if row["kind"] in NEEDED]
    place = data.draw(st.sampled_from(places))
    records = list(healthy())
    records.insert(place, records[place])
    assert caught(records), f"record {place + 1}, {healthy()[place]['kind']}"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_two_neighbours_that_change_places_are_caught(data: st.DataObject) -> None:
    pairs = [
        place
        for place, (row, following) in enumerate(zip(healthy(), healthy()[1:], strict=False))
        if row["kind"] in ORDERED and following["kind"] in ORDERED
    ]
    place = data.draw(st.sampled_from(pairs))
    records = list(healthy())
    records[place], records[place + 1] = records[place + 1], records[place]
    assert caught(records), f"records {place + 1} and {place + 2}"
