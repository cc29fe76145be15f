"""Each rule of the contract is broken once, and the check that watches it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.verdict.broken_apps import (
    BROKEN,
    FeedsTokenTwice,
    HidesEvictions,
    HidesTrims,
    KeepsHead,
    KeepsMemory,
    KeepsOldRowsInMemory,
    NeverEvicts,
    NeverTrims,
)
from tests.verdict.host_side import check_of, failures, judged
from tests.verdict.telemetry_factory import App

if TYPE_CHECKING:
    from tests.verdict.telemetry_spec import Spec


@pytest.mark.parametrize(
    ("app", "spec", "check_id"),
    BROKEN,
    ids=[f"{app.__name__} is caught by {check_id}" for app, _, check_id in BROKEN],
)
def test_a_broken_rule_is_caught(app: type[App], spec: Spec, check_id: str) -> None:
    assert not failures(judged(App(spec))), "the honest app passes the same scenario"
    judgement = judged(app(spec))
    check = check_of(judgement, check_id)
    assert check.result == "fail"
    assert check.reason
    assert check.launch is not None
    assert check.seq is not None
    assert judgement.verdict.outcome == "FAIL"
    assert judgement.verdict.cause == "assertion_failed"


@pytest.mark.parametrize(
    ("app", "check_id"),
    [
        (KeepsHead, "trim.keeps-tail"),
        (KeepsOldRowsInMemory, "context.proven"),
        (FeedsTokenTwice, "context.proven"),
        (KeepsMemory, "evict.frees-memory"),
        (HidesTrims, "trim.notice"),
        (HidesEvictions, "evict.notice"),
        (NeverEvicts, "evict.on-warning"),
    ],
)
def test_one_defect_fails_its_own_check_alone(app: type[App], check_id: str) -> None:
    assert failures(judged(app())) == {check_id}


def test_a_wrong_trim_is_reported_once_and_not_at_every_later_token() -> None:
    app = KeepsHead()
    check = check_of(judged(app), "trim.keeps-tail")
    assert check.value == app.counts["trim"]


def test_a_trim_that_never_comes_is_reported_once_a_turn() -> None:
    app = NeverTrims()
    check = check_of(judged(app), "trim.on-schedule")
    assert isinstance(check.value, int)
    assert check.value <= app.counts["turns"]


def test_the_deciding_record_is_the_first_wrong_trim() -> None:
    app = KeepsHead()
    judgement = judged(app)
    first = next(row for row in app.records if row["kind"] == "trim")
    chunk = next(
        row
        for row in app.records
        if row["kind"] == "prefill" and row["purpose"] == "trim" and row["seq"] > first["seq"]  # type: ignore[operator]
    )
    assert check_of(judgement, "trim.keeps-tail").seq == chunk["seq"]
