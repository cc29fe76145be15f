from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.device.aliases import MAX_LENGTH, aliases_of, safe_name

A, B, C = (f"00008130-00000000000{n}AB{n}" for n in "123")


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("Anna's iPhone", "Anna-s-iPhone"),
        ("../../etc/passwd", "etc-passwd"),
        (".hidden", "hidden"),
        ("-rf", "rf"),
        ("Žaneta", "Zaneta"),
        ("a\x00b\x1b[31m\n", "a-b-31m"),
        ("手机", ""),
        ("x" * 500, "x" * MAX_LENGTH),
    ],
)
def test_a_hostile_name_becomes_a_safe_one(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_a_phones_own_name_is_its_alias() -> None:
    assert aliases_of({A: "Bench 1"}, {}) == {A: "Bench-1"}


def test_an_expected_alias_wins_and_is_given_to_no_other_phone() -> None:
    aliases = aliases_of({A: "iPhone", B: "bench-01"}, {A: "bench-01"})
    assert aliases == {A: "bench-01", B: "bench-01-2AB2"}


def test_an_alias_of_an_absent_expected_phone_is_not_given_away() -> None:
    assert aliases_of({B: "Bench-01"}, {C: "bench-01"}) == {B: "Bench-01-2AB2"}


def test_equal_names_all_get_a_piece_of_their_udid() -> None:
    assert aliases_of({A: "iPhone", B: "iphone"}, {}) == {A: "iPhone-1AB1", B: "iphone-2AB2"}


@pytest.mark.parametrize("name", ["all", "AND", "or", "not"])
def test_words_of_the_grammar_are_no_alias(name: str) -> None:
    assert aliases_of({A: name}, {}) == {A: f"{name}-1AB1"}


def test_a_name_without_any_letter_becomes_iphone_and_udid() -> None:
    assert aliases_of({A: "手机"}, {}) == {A: "iphone-1AB1"}


udids = st.integers(0, 16**6).map(lambda n: f"00008130-{n:016X}")


@given(st.dictionaries(udids, st.text(max_size=20) | st.sampled_from(["iPhone", "IPHONE"])))
def test_aliases_are_always_safe_and_unique_whatever_the_case(names: dict[str, str]) -> None:
    aliases = aliases_of(names, {})
    assert aliases.keys() == names.keys()
    assert len({alias.casefold() for alias in aliases.values()}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", alias) for alias in aliases.values())
