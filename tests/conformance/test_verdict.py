"""The judgement over the client's suite."""

from __future__ import annotations

from tests.conformance.out_of_scope import NEEDS
from tests.conformance.verdict import (
    Results,
    complaints,
    node_of,
    read_results,
    table,
    with_second_attempt,
)

JUNIT = """<testsuites><testsuite>
<testcase classname="tests.a" name="good"/>
<testcase classname="tests.a" name="gone"><skipped/></testcase>
<testcase classname="tests.a" name="bad"><failure/></testcase>
<testcase classname="tests.a" name="bad"><error/></testcase>
</testsuite></testsuites>"""


def test_results_are_counted_and_an_error_is_a_failure() -> None:
    tried = frozenset({"tests.a::good", "tests.a::gone", "tests.a::bad"})
    assert read_results(JUNIT) == Results(1, ("tests.a::gone",), ("tests.a::bad",), tried)


def test_a_failure_that_passes_at_a_second_attempt_has_passed() -> None:
    first = Results(5, (), ("tests.a::x", "tests.a::y", "tests.a::z"))
    second = Results(1, (), ("tests.a::y",), frozenset({"tests.a::x", "tests.a::y"}))
    assert with_second_attempt(first, second) == Results(6, (), ("tests.a::y", "tests.a::z"))
    assert node_of("tests.remote.test_a::test_b[1]") == "tests/remote/test_a.py::test_b[1]"


def test_the_known_failures_are_accepted() -> None:
    assert complaints(Results(123, (), tuple(NEEDS)), NEEDS) == []
    assert len(NEEDS) <= 10


def test_another_failure_is_not() -> None:
    (complaint,) = complaints(Results(123, (), ("tests.a::bad",)), NEEDS)
    assert "tests.a::bad" in complaint


def test_too_few_passes_and_too_many_failures_are_said() -> None:
    many = tuple(f"tests.a::{number}" for number in range(11))
    found = complaints(Results(115, (), many), dict.fromkeys(many, "x"))
    assert [line.split()[0] for line in found] == ["115", "11"]


def test_the_table_names_what_each_failure_needs() -> None:
    rows = table(Results(1, (), ("tests.a::bad",)), {"tests.a::bad": "a screen"}).splitlines()
    assert rows[2] == "| `a bad` | a screen |"
