from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from orchestrator.report.attempts import Attempt
from orchestrator.report.console import CONSOLE_LIMIT_BYTES
from orchestrator.report.junit import junit_xml
from orchestrator.runlog.documents import SkippedPhone
from tests.report.results import HOSTILE, check, death, kill_report, phone, run, stamps, verdict

if TYPE_CHECKING:
    import xmlschema

    from orchestrator.report.result import RunResult

RUNS = {
    "no phone": run(),
    "all pass": run(phone(verdict(check()))),
    "death": run(phone(death(), reports=(kill_report(),))),
    "every result": run(
        phone(
            verdict(
                check("memory.peak", "fail", reason="too high", value=2**31, unit="bytes", seq=9),
                check("trim.on-schedule", "unmeasured", reason="no trim"),
                check("trim.parity", "unmeasured", reason="no audit"),
                check("perf.decay", "skipped", reason="virtual"),
            )
        )
    ),
    "hostile": run(
        phone(
            death(alias=HOSTILE, explanation=HOSTILE, last_breadcrumb=HOSTILE, model=HOSTILE),
            reports=(kill_report(file=HOSTILE),),
            console=HOSTILE,
            stamps=stamps(os_build=HOSTILE),
            attempts=(Attempt(1, HOSTILE, HOSTILE, (HOSTILE,)), Attempt(2, None, None, ())),
        ),
        phone(verdict(check(result="fail", reason=HOSTILE, value=HOSTILE, launch=HOSTILE, seq=1))),
        host=HOSTILE,
    ),
}


def tree(result: RunResult) -> ET.Element:
    return ET.fromstring(junit_xml(result))  # noqa: S314 - our own output


def case_of(result: RunResult, name: str) -> ET.Element:
    found = tree(result).find(f".//testcase[@name='{name}']")
    assert found is not None
    return found


def only_child(element: ET.Element) -> ET.Element:
    (child,) = element
    return child


@pytest.mark.parametrize("name", RUNS)
def test_every_run_is_valid_junit(name: str, junit_schema: xmlschema.XMLSchema) -> None:
    junit_schema.validate(junit_xml(RUNS[name]).decode())


def test_the_schema_can_refuse(junit_schema: xmlschema.XMLSchema) -> None:
    broken = junit_xml(RUNS["death"]).decode().replace("<failure message=", "<failure massage=")
    assert not junit_schema.is_valid(broken)


def test_a_phone_is_a_suite_and_a_check_is_a_case() -> None:
    root = tree(RUNS["all pass"])
    (suite,) = root
    assert suite.get("name") == "desk-1"
    cases = [(case.get("classname"), case.get("name")) for case in suite.iter("testcase")]
    assert cases == [("desk-1", "soak"), ("desk-1", "trim.on-schedule")]
    assert not any(list(case) for case in suite.iter("testcase"))


def test_a_death_is_a_failure_that_tells_what_was_last_known() -> None:
    failure = only_child(case_of(RUNS["death"], "soak"))
    assert (failure.tag, failure.get("type")) == ("failure", "jetsam_per_process_limit")
    assert failure.get("message") == "The app passed its memory limit and was killed."
    assert (failure.text or "").splitlines() == [
        "cause: jetsam_per_process_limit",
        "last footprint: 3,240.0 MiB (96.0% of the limit)",
        "limit: 3,376.0 MiB",
        "last token index: 4711",
        "last breadcrumb: trim",
        "report: devices/desk-1-00000001/attempts/1/reports/JetsamEvent.ips",
    ]


@pytest.mark.parametrize(
    ("outcome", "cause", "tag"),
    [
        ("FAIL", "hang", "failure"),
        ("ERROR", "device_lost", "error"),
        ("ABORTED", "user_aborted", "error"),
    ],
)
def test_the_product_fails_and_the_lab_errs(outcome: str, cause: str, tag: str) -> None:
    trouble = only_child(case_of(run(phone(verdict(outcome=outcome, cause=cause))), "soak"))
    assert (trouble.tag, trouble.get("type")) == (tag, cause)


@pytest.mark.parametrize(
    ("name", "tag", "message"),
    [
        ("memory.peak", "failure", "too high"),
        ("trim.on-schedule", "error", "required, but unmeasured: no trim"),
        ("trim.parity", "skipped", "unmeasured: no audit"),
        ("perf.decay", "skipped", "skipped: virtual"),
    ],
)
def test_every_result_has_its_element(name: str, tag: str, message: str) -> None:
    child = only_child(case_of(RUNS["every result"], name))
    assert (child.tag, child.get("message")) == (tag, message)


def test_a_failing_check_names_value_limit_and_record() -> None:
    failing = check(
        "memory.peak", "fail", value=2**31, limit=2**30, unit="bytes", launch="abc", seq=9
    )
    failure = only_child(case_of(run(phone(verdict(failing))), "memory.peak"))
    assert failure.text == "value: 2,048.0 MiB\nlimit: 1,024.0 MiB\nrecord: launch abc seq 9"


def test_the_counts_are_right_and_no_sum_is_skipped_on_the_root() -> None:
    root = tree(RUNS["every result"])
    (suite,) = root
    names = ("tests", "failures", "errors", "skipped")
    assert [suite.get(name) for name in names] == ["5", "1", "1", "2"]
    assert [root.get(name) for name in names] == ["5", "1", "1", None]


def test_earlier_attempts_are_reruns_or_flaky_by_how_the_last_one_ended() -> None:
    lost = Attempt(1, "device_lost", "the cable", ("gone after 3.0 s",))
    tries = (lost, Attempt(2, None, None, ()))
    failed = case_of(run(phone(verdict(outcome="FAIL", cause="crash"), attempts=tries)), "soak")
    assert [child.tag for child in failed] == ["failure", "rerunError"]
    passed = only_child(case_of(run(phone(verdict(), attempts=tries)), "soak"))
    assert (passed.tag, passed.get("type")) == ("flakyError", "device_lost")
    assert passed.get("message") == "attempt 1 ended with device_lost: the cable"
    assert passed.findtext("stackTrace") == "gone after 3.0 s"


def test_the_console_is_shown_with_the_soak() -> None:
    case = case_of(run(phone(verdict(), console="fleet-harness listening\n")), "soak")
    assert case.findtext("system-out") == "fleet-harness listening\n"


def test_a_long_console_keeps_its_ends() -> None:
    case = case_of(run(phone(verdict(), console="head" + "x" * 5_000_000 + "tail")), "soak")
    text = case.findtext("system-out") or ""
    assert len(text.encode()) <= CONSOLE_LIMIT_BYTES
    assert text.startswith("head")
    assert text.endswith("tail")
    assert "bytes are left out here" in text


def test_a_skipped_phone_is_a_skipped_soak_with_its_reason() -> None:
    skipped = SkippedPhone(udid="u", alias="old", model="iPhone 13", os="18.5", reason="too old")
    suite = tree(run(skipped=(skipped,))).find("testsuite[@name='old']")
    assert suite is not None
    assert only_child(suite.findall("testcase")[0]).get("message") == "not soaked: too old"


def test_stamps_and_attempts_are_properties() -> None:
    tries = (Attempt(1, None, None, ()),) * 2
    root = tree(run(phone(verdict(), stamps=stamps(), attempts=tries)))
    found = {each.get("name"): each.get("value") for each in root.iter("property")}
    assert (found["ios_build"], found["charger"], found["attempts"]) == ("22F76", "connected", "2")


def test_messages_of_a_megabyte_are_cut(junit_schema: xmlschema.XMLSchema) -> None:
    long = "x" * 1_000_000
    checks = [check(result="fail", reason=long, value=long, launch=long, seq=1)]
    content = junit_xml(run(phone(death(checks=checks, explanation=long, alias=long))))
    junit_schema.validate(content.decode())
    assert len(content) < 200_000
