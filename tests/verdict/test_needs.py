"""A check never passes without the records that it is said to need."""

from __future__ import annotations

import pytest

from orchestrator.domain.checks import CHECK_IDS
from orchestrator.verdict.judge import judge
from orchestrator.verdict.needs import NEEDS, missing_kinds
from tests.verdict.host_side import case_of, check_of, encode
from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import FULL, Row


@pytest.fixture(scope="module")
def records() -> list[Row]:
    return App(FULL).run()


def test_every_check_is_listed() -> None:
    assert tuple(NEEDS) == CHECK_IDS


@pytest.mark.parametrize("check_id", [check_id for check_id, kinds in NEEDS.items() if kinds])
def test_without_the_needed_records_a_check_does_not_pass(
    check_id: str, records: list[Row]
) -> None:
    assert check_of(judge(case_of(FULL), encode(records)), check_id).result == "pass"
    left = [record for record in records if record["kind"] not in NEEDS[check_id]]
    assert check_of(judge(case_of(FULL), encode(left)), check_id).result != "pass"


def test_what_is_missing_is_named_in_order() -> None:
    assert missing_kinds("trim.notice", {"trim"}) == ("notice",)
    assert missing_kinds("jetsam.none", ()) == ()
