"""Decides whether the client's suite was passed well enough. Pure, but for reading the XML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Mapping

LEAST_PASSED: Final = 116
MOST_FAILED: Final = 10


@dataclass(frozen=True, slots=True)
class Results:
    """What the suite said."""

    passed: int
    skipped: tuple[str, ...]
    failed: tuple[str, ...]  # errors of fixtures included
    tried: frozenset[str] = frozenset()  # all that were run


def read_results(junit: str) -> Results:
    """Return the results in a JUnit document that our own pytest wrote."""
    tried, skipped, failed = set[str](), list[str](), list[str]()
    for case in ET.fromstring(junit).iter("testcase"):  # noqa: S314
        name = f"{case.get('classname')}::{case.get('name')}"
        tried.add(name)
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        elif case.find("skipped") is not None:
            skipped.append(name)
    passed = tried - {*failed, *skipped}
    unique = tuple(dict.fromkeys(failed))
    return Results(len(passed), tuple(skipped), unique, frozenset(tried))


def node_of(name: str) -> str:
    """Return what pytest calls a test, from its name in JUnit."""
    module, _, test = name.partition("::")
    return f"{module.replace('.', '/')}.py::{test}"


def with_second_attempt(first: Results, second: Results) -> Results:
    """Return the results where some failures were tried again, and these are what came of it."""
    return Results(
        first.passed + second.passed,
        first.skipped,
        tuple(name for name in first.failed if name in second.failed or name not in second.tried),
    )


def complaints(results: Results, needs: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the results; nothing if they are as they should be.

    Args:
        results: Of the suite.
        needs: Failures that are accepted, and the service that each needs.
    """
    found = []
    if results.passed < LEAST_PASSED:
        found.append(f"{results.passed} passed, at least {LEAST_PASSED} should")
    if len(results.failed) > MOST_FAILED:
        found.append(f"{len(results.failed)} failed, at most {MOST_FAILED} may")
    found += [
        f"{name} failed and needs no service that is missing"
        for name in results.failed
        if name not in needs
    ]
    return found


def table(results: Results, needs: Mapping[str, str]) -> str:
    """Return the failures as a Markdown table."""
    lines = ["| test | needs |", "|---|---|"]
    for name in results.failed:
        short = name.removeprefix("tests.").replace("::", " ")
        lines.append(f"| `{short}` | {needs.get(name, '**nothing that is missing**')} |")
    return "\n".join(lines)
