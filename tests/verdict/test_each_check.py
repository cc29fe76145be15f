"""Each of the later checks fails for its own defect, names its record, and passes beside it."""

from __future__ import annotations

import pytest

from orchestrator.domain.outcome import Result
from orchestrator.runlog.documents import PlannedPhone, Requirement
from orchestrator.verdict.judge import judge
from tests.verdict import broken_states as broken
from tests.verdict.host_side import (
    case_of,
    check_of,
    encode,
    failures,
    judged,
    plan_of,
    planned_phone,
)
from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import FULL, Row

BROKEN = [
    (broken.ForgetsCount, "trim.count-consistent"),
    (broken.AuditsFindDrift, "trim.parity"),
    (broken.AuditsFindOtherOrder, "trim.parity"),
    (broken.AuditsFindNoNumber, "trim.parity"),
    (broken.RegistersLate, "evict.handler-first"),
    (broken.NeverRegisters, "evict.handler-first"),
    (broken.Leaks, "memory.drift"),
    (broken.GrowsWithRows, "memory.static-kv"),
    (broken.StaysInBackground, "background.releases"),
    (broken.PredictsInBackground, "background.releases"),
    (broken.StandsStill, "hang.none"),
    (broken.StatePerToken, "state.lifecycle"),
    (broken.MakesBeforeRelease, "state.lifecycle"),
    (broken.KeepsStateAtTheEnd, "state.lifecycle"),
    (broken.EndsTwice, "stream.ends-once"),
    (broken.ConsumerMissesOne, "stream.ends-once"),
    (broken.ConsumerSeesOthers, "stream.ends-once"),
    (broken.DecodesEachToken, "stream.text-valid"),
    (broken.LosesText, "stream.text-valid"),
    (broken.SaysOneThing, "stream.sane"),
    (broken.IsSlow, "perf.throughput"),
    (broken.SlowsDown, "perf.decay"),
    (broken.FeedsContextAgain, "perf.flat-decode"),
]


@pytest.mark.parametrize(
    ("app", "check_id"), BROKEN, ids=[f"{app.__name__} by {check_id}" for app, check_id in BROKEN]
)
def test_a_defect_is_caught_by_its_check(app: type[App], check_id: str) -> None:
    judgement = judged(app())
    check = check_of(judgement, check_id)
    assert check.result == "fail", check
    assert check.reason
    assert check.launch is not None
    assert check.seq is not None
    assert judgement.verdict.outcome == "FAIL"


@pytest.mark.parametrize(
    "app",
    [
        broken.AuditsFindDrift,
        broken.RegistersLate,
        broken.Leaks,
        broken.EndsTwice,
        broken.DecodesEachToken,
        broken.StandsStill,
    ],
)
def test_neighbours_stay_silent(app: type[App]) -> None:
    allowed = {check_id for name, check_id in BROKEN if name is app}
    if app is broken.StandsStill:
        allowed |= {"telemetry.complete"}  # its samples have a gap too
    if app is broken.Leaks:
        allowed |= {"memory.static-kv"}  # a token leaks as much as its row takes
    if app is broken.EndsTwice:
        allowed |= {"trim.on-schedule"}  # the turn's end is part of the schedule
    assert failures(judged(app())) <= allowed


def test_a_leak_is_told_in_mebibytes_against_its_limit() -> None:
    check = check_of(judged(broken.Leaks()), "memory.drift")
    assert (check.unit, check.limit) == ("MiB", 24.0)
    assert isinstance(check.value, float)
    assert 60.0 < check.value < 160.0
    assert "MiB/h" in (check.reason or "")


def test_jitter_around_the_right_speed_is_no_loss() -> None:
    assert not failures(judged(broken.JitteryApp()))


def test_a_loss_that_comes_with_heat_is_the_phones() -> None:
    judgement = judged(broken.SlowsWithHeat())
    assert {check_of(judgement, name).result for name in ("perf.throughput", "perf.decay")} == {
        "pass"
    }
    remark = check_of(judgement, "perf.throughput").reason or ""
    assert remark.startswith("nominal 200.0 tokens/s, serious 100.")


def test_a_loss_without_heat_is_flagged() -> None:
    for app, check_id in ((broken.SlowsDown, "perf.decay"), (broken.IsSlow, "perf.throughput")):
        reason = check_of(judged(app()), check_id).reason or ""
        assert reason.startswith("slow_without_heat: nominal"), reason


@pytest.mark.parametrize("check_id", ["perf.throughput", "perf.decay", "perf.flat-decode"])
def test_speed_is_skipped_on_virtual_phones_unless_the_scenario_judges_it(check_id: str) -> None:
    plan = plan_of(FULL, requires=Requirement(checks=[]))
    check = check_of(judged(broken.IsSlow(), plan=plan), check_id)
    assert check.result == Result.SKIPPED
    assert (check.reason or "").startswith("virtual")


def without(phone: PlannedPhone, **changes: object) -> PlannedPhone:
    fields = {name: getattr(phone, name) for name in phone.__struct_fields__}
    return PlannedPhone(**{**fields, **changes})


def load_case(load: Row, **phone: object) -> tuple[str, str | None]:
    records = App(FULL).run()
    next(row for row in records if row["kind"] == "load").update(load)
    planned = without(planned_phone(FULL), **phone)
    judgement = judge(case_of(FULL, phone=planned), encode(records))
    return check_of(judgement, "load.time").result, check_of(judgement, "load.time").reason


def expected_without_set_time() -> object:
    expected = planned_phone(FULL).expected
    fields = {name: getattr(expected, name) for name in expected.__struct_fields__}
    return type(expected)(**{**fields, "load_ms": None})


@pytest.mark.parametrize(
    ("load", "result"),
    [
        ({"ms": 19.0}, "pass"),
        ({"ms": 21.0}, "fail"),
    ],
)
def test_a_set_load_time_may_be_doubled(load: Row, result: str) -> None:
    assert load_case(load)[0] == result


@pytest.mark.parametrize(
    ("load", "result"),
    [
        ({"ms": 118_500.0, "cold": True}, "pass"),
        ({"ms": 2_080.0, "cold": False}, "pass"),
        ({"ms": 118_500.0, "cold": False}, "fail"),
        ({"ms": 200_000.0, "cold": True}, "fail"),
    ],
)
def test_a_cold_load_may_compile_and_a_warm_one_may_not(load: Row, result: str) -> None:
    found, _ = load_case(load, virtual=False, expected=expected_without_set_time())
    assert found == result


def test_the_load_time_of_a_virtual_phone_is_its_hosts() -> None:
    result, reason = load_case({"ms": 500_000.0}, expected=expected_without_set_time())
    assert result == "skipped"
    assert (reason or "").startswith("virtual")


@pytest.mark.parametrize(
    ("plan", "virtual", "result"),
    [
        ([{"group": "feed_forward", "device": "neural_engine", "ops": 9}], True, "pass"),
        ([{"group": "feed_forward", "device": "cpu", "ops": 9}], True, "fail"),
        (
            [
                {"group": "feed_forward", "device": "neural_engine", "ops": 9},
                {"group": "feed_forward", "device": "gpu", "ops": 2},
            ],
            True,
            "fail",
        ),
        ([], True, "skipped"),
        ([], False, "unmeasured"),
        ([{"group": 7, "device": [], "ops": "many"}], False, "unmeasured"),
    ],
)
def test_the_feed_forward_belongs_on_the_neural_engine(
    plan: list[object], virtual: bool, result: str
) -> None:
    records = App(FULL).run()
    next(row for row in records if row["kind"] == "load")["plan"] = plan
    phone = without(planned_phone(FULL), virtual=virtual)
    check = check_of(judge(case_of(FULL, phone=phone), encode(records)), "plan.placement")
    assert check.result == result


def test_the_first_warning_is_told_by_its_rows() -> None:
    app = App(FULL)
    records = app.run()
    verdict = judge(case_of(FULL), encode(records)).verdict
    assert verdict.first_warning_at_n is not None
    assert 0 < verdict.first_warning_at_n <= FULL.budget


def test_a_threshold_of_the_plan_replaces_a_limit() -> None:
    plan = plan_of(FULL, thresholds={"trim.parity": {"max_abs_logit": 2.0}})
    assert check_of(judged(broken.AuditsFindDrift(), plan=plan), "trim.parity").result == "pass"
