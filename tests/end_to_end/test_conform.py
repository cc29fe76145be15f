"""`fleet conform`: what a check's result and the records that came say of an app."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.conformance import (
    NOT_EXERCISED,
    NOT_HERE,
    NOT_SENT,
    SUPPORTED,
    conformance_of,
    support_of,
)
from orchestrator.harness.package import pack_stand_in
from orchestrator.runlog.documents import CheckDocument
from tests.end_to_end.fleet_process import QUICK, WITHOUT_SWIFT, run_fleet

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.end_to_end.fleet_process import FinishedRun


@pytest.mark.parametrize(
    ("result", "sent", "support", "not_sent"),
    [
        ("pass", {"trim", "notice"}, SUPPORTED, []),
        ("fail", {"trim"}, SUPPORTED, []),
        ("unmeasured", {"trim"}, NOT_SENT, ["notice"]),
        ("skipped", set(), NOT_SENT, ["trim", "notice"]),
        ("unmeasured", {"trim", "notice"}, NOT_EXERCISED, []),
        ("skipped", {"trim", "notice"}, NOT_HERE, []),
    ],
)
def test_a_result_is_no_support_without_its_records(
    result: str, sent: set[str], support: str, not_sent: list[str]
) -> None:
    found = support_of(CheckDocument(id="trim.notice", result=result), sent, {"trim.notice"})
    assert (found.support, found.not_sent, found.required) == (support, not_sent, True)


def test_a_run_says_what_its_app_supports(quick_runs: Mapping[str, FinishedRun]) -> None:
    found = conformance_of(quick_runs["clean"].path)
    support = {check.id: check.support for check in found.checks}
    assert found.conforms
    assert (found.engine, found.exit_code) == ("witness", 0)
    assert support["trim.on-schedule"] == SUPPORTED
    assert support["trim.parity"] == NOT_SENT
    assert list(found.lines())[-1].endswith("the app conforms")


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_an_app_that_was_given_is_run_on_one_phone_and_leaves_nothing(tmp_path: Path) -> None:
    ipa = pack_stand_in(tmp_path / "app.ipa")
    words = ("conform", "--ipa", str(ipa), "--virtual", "--json", *QUICK)
    run = run_fleet(tmp_path, *words, limit_s=250, PATH=WITHOUT_SWIFT)
    assert run.exit_code == 0, run.stderr
    found = json.loads(run.stdout)
    assert (found["app"], found["engine"], found["virtual"]) == (
        "dev.fleet.harness",
        "witness",
        True,
    )
    support = {check["id"]: check["support"] for check in found["checks"]}
    assert support["trim.on-schedule"] == SUPPORTED
    assert support["trim.parity"] == NOT_SENT
    assert {check["support"] for check in found["checks"] if check["required"]} == {SUPPORTED}


def test_an_app_that_is_not_there_is_refused_before_a_phone_is_started(tmp_path: Path) -> None:
    run = run_fleet(tmp_path, "conform", "--virtual", "--ipa", "nothing.ipa", cwd=tmp_path)
    assert run.exit_code == 2
    assert "nothing.ipa is not there" in run.stderr
