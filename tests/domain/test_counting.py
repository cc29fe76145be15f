"""Counts as a person says them."""

from __future__ import annotations

from orchestrator.domain.counting import counted


def test_one_is_singular_and_all_else_plural() -> None:
    assert [counted(n, "phone") for n in (0, 1, 2, 1234)] == [
        "0 phones",
        "1 phone",
        "2 phones",
        "1,234 phones",
    ]
