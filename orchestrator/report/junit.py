"""JUnit XML: one suite per phone, one case per check, and a case `soak` with the outcome.

FAIL is a `<failure>`, the lab's trouble an `<error>`, so that a CI job tells them apart.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from orchestrator.domain.outcome import Outcome, Result
from orchestrator.report.wording import clean, one_line, quantity

if TYPE_CHECKING:
    from orchestrator.report.result import PhoneResult, RunResult
    from orchestrator.runlog.documents import CheckDocument

_DECLARATION: Final = b'<?xml version="1.0" encoding="utf-8"?>\n'


def junit_xml(result: RunResult) -> bytes:
    """Return the run as JUnit XML, UTF-8."""
    root = JUnitXml(clean(f"fleet {result.run.run_id}"))
    started = datetime.fromtimestamp(result.run.started_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    for phone in result.phones:
        suite = _suite(phone)
        suite.timestamp = started
        suite.hostname = clean(result.run.host)
        root.add_testsuite(suite)
    root.update_statistics()
    content: bytes = root.tostring()
    return _DECLARATION + content + b"\n"


def _suite(phone: PhoneResult) -> TestSuite:
    verdict = phone.verdict
    suite = TestSuite(one_line(verdict.alias))
    facts = {
        "udid": verdict.udid,
        "model": verdict.model,
        "product_type": verdict.product_type,
        "os": verdict.os,
        "virtual": str(verdict.virtual).lower(),
        "stand_in": str(verdict.stand_in).lower(),
    }
    for name, value in facts.items():  # first: the schema wants properties before cases
        suite.add_property(name, one_line(value))
    suite.add_testcase(_soak_case(phone))
    for check in verdict.checks:
        suite.add_testcase(_check_case(phone, check))
    return suite


def _case(phone: PhoneResult, name: str, seconds: float = 0.0) -> TestCase:
    return TestCase(one_line(name), one_line(phone.verdict.alias), round(seconds, 3))


def _soak_case(phone: PhoneResult) -> TestCase:
    verdict = phone.verdict
    case = _case(phone, "soak", phone.span_s or 0.0)
    if verdict.outcome == Outcome.PASS:
        return case
    kind = Failure if verdict.outcome == Outcome.FAIL else Error
    trouble = kind(clean(verdict.explanation), one_line(verdict.cause))
    trouble.text = "\n".join(f"{label}: {fact}" for label, fact in phone.last_facts)
    case.result = [trouble]
    return case


def _check_case(phone: PhoneResult, check: CheckDocument) -> TestCase:
    case = _case(phone, check.id)
    reason = clean(check.reason or check.result)
    if check.result == Result.FAIL:
        trouble = Failure(reason, one_line(phone.verdict.cause))
        trouble.text = _decision(check)
        case.result = [trouble]
    elif phone.is_missing(check):
        case.result = [Error(f"required, but unmeasured: {reason}", "unmeasured")]
    elif check.result != Result.PASS:
        case.result = [Skipped(f"{check.result}: {reason}")]
    return case


def _decision(check: CheckDocument) -> str:
    record = "—" if check.seq is None else f"launch {one_line(check.launch or '?')} seq {check.seq}"
    return (
        f"value: {quantity(check.value, check.unit)}\n"
        f"limit: {quantity(check.limit, check.unit)}\n"
        f"record: {record}"
    )
