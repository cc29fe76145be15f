from __future__ import annotations

import json

import pytest
from msgspec import json as msgspec_json

from orchestrator.report.remake import summarise
from tests.report.results import check, run, verdict

PASS, FAIL, ERROR = "PASS", "FAIL", "ERROR"


@pytest.mark.parametrize(
    ("outcomes", "interrupted_by", "outcome", "exit_code"),
    [
        ([PASS, PASS], None, "PASS", 0),
        ([PASS, ERROR, FAIL], None, "FAIL", 1),
        ([PASS, ERROR], None, "ERROR", 4),
        ([], None, "ERROR", 4),
        ([PASS], "SIGINT", "ABORTED", 130),
        ([FAIL], "SIGTERM", "FAIL", 143),
        ([PASS], "SIGHUP", "ABORTED", 4),
    ],
)
def test_a_run_has_the_worst_outcome_and_its_exit_code(
    outcomes: list[str], interrupted_by: str | None, outcome: str, exit_code: int
) -> None:
    document = run(interrupted_by=interrupted_by).run
    summary = summarise(document, [verdict(outcome=each) for each in outcomes])
    assert (summary.outcome, summary.exit_code) == (outcome, exit_code)


@pytest.mark.parametrize("outcomes", [[], [PASS], [FAIL]])
def test_a_run_that_never_ended_is_aborted_and_inconclusive(outcomes: list[str]) -> None:
    document = run(ended_s=None).run
    summary = summarise(document, [verdict(outcome=each) for each in outcomes])
    assert (summary.outcome, summary.exit_code) == ("ABORTED", 4)


def test_the_summary_has_all_its_keys_and_the_schema_first() -> None:
    summary = summarise(run().run, [verdict(check())])
    written = json.loads(msgspec_json.encode(summary))
    assert list(written) == ["schema", "run_id", "outcome", "exit_code", "virtual", "phones"]
    (phone,) = written["phones"]
    assert list(phone) == [
        "udid",
        "alias",
        "model",
        "product_type",
        "os",
        "outcome",
        "cause",
        "checks",
    ]
    assert phone["checks"] == [
        {
            "id": "trim.on-schedule",
            "result": "pass",
            "value": None,
            "unit": None,
            "limit": None,
            "reason": None,
            "launch": None,
            "seq": None,
        }
    ]
