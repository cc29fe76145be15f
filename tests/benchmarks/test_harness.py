"""The page of the harness' benchmark is written by its script and holds what the goals ask for."""

from __future__ import annotations

import pytest

from tests.benchmarks.harness import COMMAND, PAGE, conditions, written


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    page = "a\n<!-- measured: begin -->\nold\n<!-- measured: end -->\nb\n"
    assert written(page, "new\n") == page.replace("old", "new")


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="substring"):
        written("a\n", "b\n")


def test_the_conditions_name_command_and_load() -> None:
    line = conditions(0.5, 11.26, -19)
    assert COMMAND in line
    assert "load average 0.5 before and 11.3 after, nice -19" in line


def test_the_page_holds_every_table() -> None:
    page = PAGE.read_text("utf-8")
    for title in (
        "Logits against the goldens",
        "Share of time inside the engine",
        "Live heap",
        "Decode step",
    ):
        assert f"### {title}" in page
    assert COMMAND in page
