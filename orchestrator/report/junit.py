"""JUnit XML: one suite per phone, one case per check, and a case `soak` with the outcome.

FAIL is a `<failure>`, the lab's trouble an `<error>`, so that a CI job tells them apart. Earlier
attempts are Surefire's `rerunError`, or `flakyError` where the last one passed. The form is that of
Jenkins' `junit-10.xsd`, which GitLab, GitHub's reporters and Azure read too.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from junitparser import Error, Failure, Skipped
from junitparser.xunit2 import FlakyError, JUnitXml, RerunError, TestCase, TestSuite

from orchestrator.domain.outcome import Outcome, Result
from orchestrator.report.console import CONSOLE_LIMIT_BYTES, within
from orchestrator.report.wording import clean, one_line, quantity, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.report.attempts import Attempt
    from orchestrator.report.result import PhoneResult, RunResult
    from orchestrator.runlog.documents import CheckDocument, SkippedPhone

_DECLARATION: Final = b'<?xml version="1.0" encoding="utf-8"?>\n'


def junit_xml(result: RunResult) -> bytes:
    """Return the run as JUnit XML, UTF-8."""
    root = JUnitXml(clean(f"fleet {result.run.run_id}"))
    started = datetime.fromtimestamp(result.run.started_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    skipped = result.plan.skipped if result.plan else []
    suites = [_suite(phone) for phone in result.phones] + [_not_soaked(each) for each in skipped]
    for suite in suites:
        suite.timestamp = started
        suite.hostname = clean(result.run.host)
        root.add_testsuite(suite)
    root.update_statistics()
    content: bytes = root.tostring()
    return _DECLARATION + content + b"\n"


def _suite(phone: PhoneResult) -> TestSuite:
    suite = TestSuite(_short(phone.verdict.alias))
    for name, value in _properties(phone):  # first: the schema wants properties before cases
        suite.add_property(name, _short(value))
    suite.add_testcase(_soak_case(phone))
    for check in phone.verdict.checks:
        suite.add_testcase(_check_case(phone, check))
    return suite


def _properties(phone: PhoneResult) -> Iterator[tuple[str, str]]:
    verdict = phone.verdict
    yield "udid", verdict.udid
    yield "model", verdict.model
    yield "product_type", verdict.product_type
    yield "os", verdict.os
    if verdict.host is not None:
        yield "host", verdict.host
    yield "virtual", str(verdict.virtual).lower()
    yield "stand_in", str(verdict.stand_in).lower()
    yield "outcome", verdict.outcome
    yield "cause", verdict.cause
    yield "attempts", str(len(phone.attempts))
    for label, value in phone.stamps.shown if phone.stamps else ():
        yield label.casefold().replace(" ", "_"), value


def _not_soaked(phone: SkippedPhone) -> TestSuite:
    suite = TestSuite(_short(phone.alias))
    suite.add_property("model", _short(phone.model))
    suite.add_property("os", _short(phone.os))
    case = TestCase("soak", _short(phone.alias), 0.0)
    case.result = [_skip(f"not soaked: {phone.reason}")]
    suite.add_testcase(case)
    return suite


def _case(phone: PhoneResult, name: str, seconds: float = 0.0) -> TestCase:
    return TestCase(_short(name), _short(phone.verdict.alias), round(seconds, 3))


def _soak_case(phone: PhoneResult) -> TestCase:
    verdict = phone.verdict
    case = _case(phone, "soak", phone.span_s or 0.0)
    if verdict.outcome != Outcome.PASS:
        kind = Failure if verdict.outcome == Outcome.FAIL else Error
        trouble = kind(shortened(verdict.explanation), _short(verdict.cause))
        trouble.text = _long("\n".join(f"{label}: {fact}" for label, fact in phone.last_facts))
        case.result = [trouble]
    for attempt in phone.attempts[:-1]:
        case.add_interim_result(_earlier(attempt, passed=verdict.outcome == Outcome.PASS))
    if phone.console is not None:
        case.system_out = _long(phone.console)
    return case


def _earlier(attempt: Attempt, *, passed: bool) -> RerunError | FlakyError:
    kind = FlakyError if passed else RerunError
    retry = kind(shortened(attempt.sentence), _short(attempt.cause or "repeated"))
    retry.stack_trace = _long("\n".join(attempt.facts))
    return retry


def _check_case(phone: PhoneResult, check: CheckDocument) -> TestCase:
    case = _case(phone, check.id)
    reason = shortened(check.reason or check.result)
    if check.result == Result.FAIL:
        trouble = Failure(reason, _short(phone.verdict.cause))
        trouble.text = _long(_decision(check))
        case.result = [trouble]
    elif phone.is_missing(check):
        case.result = [Error(f"required, but unmeasured: {reason}", "unmeasured")]
    elif check.result != Result.PASS:
        case.result = [_skip(f"{check.result}: {reason}")]
    return case


def _skip(reason: str) -> Skipped:
    return Skipped(shortened(reason))


def _decision(check: CheckDocument) -> str:
    record = "—" if check.seq is None else f"launch {one_line(check.launch or '?')} seq {check.seq}"
    return (
        f"value: {quantity(check.value, check.unit)}\n"
        f"limit: {quantity(check.limit, check.unit)}\n"
        f"record: {record}"
    )


def _short(text: str) -> str:
    """Return a text for a name: one line, so long that no phone can fill the file with it."""
    return one_line(shortened(text))


def _long(text: str) -> str:
    """Return a text for an element's content, its middle left out where it is too long."""
    return clean(within(text, CONSOLE_LIMIT_BYTES))
