"""The limits that checks have, and how a wrong one is refused."""

from __future__ import annotations

from orchestrator.verdict.catalog import CATALOG, unknown_limit


def test_limits_have_names_of_their_own_within_a_check() -> None:
    for info in CATALOG.values():
        names = [limit.name for limit in info.limits]
        assert len(set(names)) == len(names)


def test_a_limit_that_no_check_has_is_named_with_those_it_has() -> None:
    assert unknown_limit({"memory.drift": {"max_mib_per_hour": 4.0}}) is None
    mistake = unknown_limit({"memory.drift": {"max_mb": 4.0}})
    assert mistake is not None
    assert "'max_mb'" in mistake
    assert "max_mib_per_hour" in mistake
    assert "none" in (unknown_limit({"trim.notice": {"x": 1.0}}) or "")
