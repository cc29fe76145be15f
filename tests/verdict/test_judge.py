"""Outcome and cause of a phone: the product, the lab, or nothing to conclude."""

from __future__ import annotations

import msgspec
import pytest

from orchestrator.evidence.classified import ClassifiedReport
from orchestrator.runlog.documents import AbsentPhone, AppExit, LaunchWindow, Requirement
from orchestrator.verdict.judge import Judgement, absent_verdict, judge
from tests.verdict.broken_apps import HidesTrims, KeepsHead
from tests.verdict.host_side import (
    case_of,
    check_of,
    encode,
    evidence_of,
    failures,
    judged,
    plan_of,
    wire_scenario,
)
from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import BOOT_S, LAUNCH, MIB, PID, Spec

KILL = AppExit(pid=PID, at_s=BOOT_S + 2, signal=9)
JETSAM = ClassifiedReport(
    file="JetsamEvent.ips",
    kind="jetsam",
    ours=True,
    in_window=True,
    launch=1,
    reason="per-process-limit",
    foreground=True,
    footprint_bytes=2867 * MIB,
    pid=PID,
    at_s=BOOT_S + 2,
    summary="harness was killed",
)


def cut(app: App, **fields: object) -> Judgement:
    """Judge a run whose records stop in the middle."""
    return judge(case_of(app.spec, **fields), encode(app.run())[:200])


def of(judgement: Judgement) -> tuple[str, str]:
    return judgement.verdict.outcome, judgement.verdict.cause


def test_a_jetsam_fails_the_phone_and_its_checks() -> None:
    judgement = cut(App(), evidence=evidence_of(exits=[KILL]), reports=[JETSAM])
    assert of(judgement) == ("FAIL", "jetsam_per_process_limit")
    assert failures(judgement) == {"jetsam.none", "soak.completed"}
    assert check_of(judgement, "jetsam.none").value == "jetsam_per_process_limit"
    assert check_of(judgement, "jetsam.none").seq == 200
    assert check_of(judgement, "crash.none").result == "pass"


@pytest.mark.parametrize("field", ["ours", "in_window"])
def test_a_report_about_something_else_decides_nothing(field: str) -> None:
    facts = {name: getattr(JETSAM, name) for name in ClassifiedReport.__slots__}
    other = ClassifiedReport(**{**facts, field: False})
    assert of(judged(App(), reports=[other])) == ("PASS", "completed")


def test_a_crash_fails_the_phone_and_its_check() -> None:
    crash = AppExit(pid=PID, at_s=BOOT_S + 2, signal=11)
    judgement = cut(App(), evidence=evidence_of(exits=[crash]))
    assert of(judgement) == ("FAIL", "crash")
    assert failures(judgement) == {"crash.none", "soak.completed"}
    assert check_of(judgement, "jetsam.none").result == "unmeasured"


def test_an_exit_of_another_process_decides_nothing() -> None:
    exits = [AppExit(pid=PID + 1, at_s=BOOT_S + 2, signal=11)]
    assert of(judged(App(), evidence=evidence_of(exits=exits)))[0] == "PASS"


def test_nobody_saw_the_end_so_no_kill_is_ruled_out() -> None:
    judgement = cut(App(), evidence=evidence_of(exits=[]))
    assert of(judgement) == ("ERROR", "telemetry_lost")
    assert check_of(judgement, "jetsam.none").result == "unmeasured"
    assert check_of(judgement, "crash.none").result == "unmeasured"
    assert check_of(judgement, "soak.completed").result == "unmeasured"


def test_an_app_seen_alive_was_not_killed() -> None:
    judgement = cut(App(), evidence=evidence_of(exits=[], alive_at_end=True))
    assert check_of(judgement, "jetsam.none").value == "seen alive at the end"


def test_a_silent_exit_fails_the_soak() -> None:
    judgement = cut(App())
    assert of(judgement) == ("FAIL", "early_exit")
    assert failures(judgement) == {"soak.completed"}


def test_a_soak_that_stops_before_its_tokens_fails() -> None:
    app = App(Spec(stop_after=300))
    judgement = judge(case_of(Spec(stop_after=400)), encode(app.run()))
    assert failures(judgement) == {"soak.completed"}
    assert of(judgement) == ("FAIL", "assertion_failed")


@pytest.mark.parametrize(("duration_s", "result"), [(2.4, "pass"), (60.0, "fail")])
def test_a_soak_is_timed_by_its_predictions_and_not_by_its_word(
    duration_s: float, result: str
) -> None:
    app = App()
    scenario = {**wire_scenario(app.spec), "stop_after_tokens": None, "duration_s": duration_s}
    plan = plan_of(app.spec, scenario=scenario)
    records = app.run()
    records[-1]["inference_s"] = 60.0
    check = check_of(judge(case_of(app.spec, plan=plan), encode(records)), "soak.completed")
    assert (check.result, check.unit, check.limit) == (result, "s", duration_s)


def test_a_second_launch_does_not_heal_the_first() -> None:
    first = encode(App().run())[:200]
    second = [line.replace(LAUNCH.encode(), b"f" * 36) for line in encode(App().run())]
    judgement = judge(case_of(evidence=evidence_of(launches=[])), first + second)
    check = check_of(judgement, "soak.completed")
    assert check.result == "fail"
    assert "an earlier launch" in (check.reason or "")


def test_a_lost_phone_is_an_error_of_the_lab() -> None:
    evidence = evidence_of(exits=[], cause_hint="device_lost", error="desk: usbmux closed")
    judgement = cut(App(), evidence=evidence)
    assert of(judgement) == ("ERROR", "device_lost")
    assert judgement.verdict.explanation == "The session ended early: desk: usbmux closed."


def test_a_broken_contract_wins_over_a_lost_phone() -> None:
    evidence = evidence_of(exits=[], cause_hint="device_lost", error="usbmux closed")
    judgement = cut(KeepsHead(), evidence=evidence)
    assert of(judgement) == ("FAIL", "assertion_failed")
    assert "usbmux closed" in judgement.verdict.explanation


def test_a_failed_check_names_itself_in_the_explanation() -> None:
    verdict = judged(HidesTrims()).verdict
    assert verdict.explanation.startswith("trim.notice failed: the trim of record ")


@pytest.mark.parametrize("app", [App, KeepsHead])
def test_a_run_that_was_killed_is_aborted_whatever_its_checks_say(app: type[App]) -> None:
    judgement = cut(app(), run_finished=False, evidence=None)
    assert of(judgement) == ("ABORTED", "user_aborted")
    assert (app is KeepsHead) == ("trim.keeps-tail" in failures(judgement))


def test_an_interrupted_run_is_aborted_and_a_finished_phone_in_it_is_not() -> None:
    assert of(cut(App(), interrupted_by="SIGINT", evidence=evidence_of(stopped_by_host=True))) == (
        "ABORTED",
        "user_aborted",
    )
    assert of(judged(App(), interrupted_by="SIGINT")) == ("PASS", "completed")


@pytest.mark.parametrize(
    ("requirement", "missing"),
    [
        (Requirement(checks=[], min_trims=100), "11 of 100 trims"),
        (Requirement(checks=[], min_evictions=7), "6 of 7 evictions by the kernel's warning"),
        (Requirement(checks=[], min_inference_s=60.0), "2.4 of 60 seconds of inference"),
    ],
)
def test_too_little_exercise_is_an_error_that_says_what_was_missing(
    requirement: Requirement, missing: str
) -> None:
    judgement = judged(App(), plan=plan_of(Spec(), requires=requirement))
    assert of(judgement) == ("ERROR", "completed")
    assert missing in judgement.verdict.explanation


def test_synthetic_warnings_do_not_count_as_the_kernels() -> None:
    verdict = judged(App(Spec(origin="synthetic"))).verdict
    assert verdict.outcome == "ERROR"
    assert "0 of 1 evictions by the kernel's warning" in verdict.explanation


def test_a_broken_contract_wins_over_too_little_exercise() -> None:
    plan = plan_of(Spec(), requires=Requirement(checks=[], min_trims=100))
    assert of(judged(KeepsHead(), plan=plan)) == ("FAIL", "assertion_failed")


def test_a_check_that_nobody_can_measure_keeps_the_phone_from_passing() -> None:
    plan = plan_of(Spec(), requires=Requirement(checks=["memory.smell"]))
    judgement = judged(App(), plan=plan)
    assert of(judgement)[0] == "ERROR"
    assert "memory.smell" in judgement.verdict.explanation


def test_the_nonce_of_another_run_proves_nothing() -> None:
    app = App()
    case = case_of(app.spec)
    phone = case.phone
    fields = {name: getattr(phone, name) for name in phone.__struct_fields__}
    stranger = type(phone)(**{**fields, "nonce": "0" * 16})
    judgement = judge(case_of(app.spec, phone=stranger), encode(app.run()))
    assert failures(judgement) == {"context.proven"}


def test_an_expected_phone_that_is_absent_is_an_error() -> None:
    absent = AbsentPhone(udid="0001", alias="rack-3", directory="rack-3-0001", reason="not found")
    verdict = absent_verdict(absent)
    assert (verdict.outcome, verdict.cause) == ("ERROR", "device_lost")
    assert verdict.explanation == "The expected phone was not found: not found."


def timed(pause_s: float) -> Judgement:
    """Judge a run of a planned duration that says goodbye some time after its last prediction."""
    app = App()
    records = app.run()
    last_end_ns = max(row["end_ns"][-1] for row in records if row["kind"] == "tokens")  # type: ignore[index]
    duration_s = last_end_ns / 1e9 + 2.0
    records[-1]["t_ns"] = last_end_ns + int(pause_s * 1e9)
    scenario = {**wire_scenario(app.spec), "duration_s": duration_s, "stop_after_tokens": None}
    return judge(case_of(plan=plan_of(app.spec, scenario=scenario)), encode(records))


def test_time_that_passes_in_a_pause_at_the_end_counts() -> None:
    assert check_of(timed(2.0), "soak.completed").result == "pass"


def test_a_farewell_right_after_the_last_prediction_is_early() -> None:
    check = check_of(timed(0.0), "soak.completed")
    assert check.result == "fail"
    assert "of inference were done" in (check.reason or "")


def relaunched(*stops: int, due: int = 2, **fields: object) -> Judgement:
    """Judge launches that did so many tokens each, of a soak of 300 tokens in each launch."""
    lines: list[bytes] = []
    for number, stop in enumerate(stops):
        own = f"{number}{LAUNCH[1:]}".encode()
        written = encode(App(Spec(stop_after=stop)).run())
        lines += [line.replace(LAUNCH.encode(), own) for line in written]
    scenario = {
        **wire_scenario(Spec()),
        "duration_s": 3600.0,
        "stop_after_tokens": due * 300,
        "relaunches": {"count": due - 1},
    }
    plan = plan_of(Spec(), scenario=scenario)
    fields.setdefault("evidence", evidence_of(launches=[]))
    return judge(case_of(None, plan=plan, **fields), lines)


def test_launches_that_each_did_their_part_complete_the_soak() -> None:
    check = check_of(relaunched(300, 300), "soak.completed")
    assert (check.result, check.value, check.limit) == ("pass", 2, 2)


@pytest.mark.parametrize("stops", [(150, 300), (300, 150), (150, 450)])
def test_a_launch_that_did_too_little_is_named_whatever_the_others_did(
    stops: tuple[int, int],
) -> None:
    check = check_of(relaunched(*stops), "soak.completed")
    assert check.result == "fail"
    assert f"launch {1 + (stops[0] == 300)} did only" in (check.reason or "")


def test_a_launch_that_was_never_made_is_not_the_products() -> None:
    judgement = relaunched(300)
    check = check_of(judgement, "soak.completed")
    assert (check.result, check.reason) == ("unmeasured", "only 1 of 2 launches were made")


def test_an_interruption_between_two_launches_aborts_the_phone() -> None:
    assert of(relaunched(300, interrupted_by="SIGINT")) == ("ABORTED", "user_aborted")


def test_a_lab_error_before_the_next_launch_is_the_labs() -> None:
    evidence = evidence_of(launches=[], cause_hint="device_lost", error="unplugged")
    assert of(relaunched(300, evidence=evidence)) == ("ERROR", "device_lost")


def test_the_farewell_of_an_earlier_launch_does_not_excuse_a_silent_one() -> None:
    first = LaunchWindow(
        number=1, pid=1, launch=f"0{LAUNCH[1:]}", started_s=BOOT_S, ended_s=BOOT_S + 9
    )
    second = msgspec.structs.replace(first, number=2, pid=2, launch=None)
    exits = [AppExit(pid=1, at_s=BOOT_S, exit_code=0), AppExit(pid=2, at_s=BOOT_S, exit_code=0)]
    evidence = evidence_of(launches=[first, second], exits=exits)
    assert of(relaunched(300, evidence=evidence)) == ("FAIL", "early_exit")
