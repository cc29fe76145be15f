"""Checks of memory, class and package."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec
import pytest
from msgspec import structs

from orchestrator.verdict.judge import judge
from tests.verdict.host_side import (
    case_of,
    check_of,
    device_of,
    encode,
    evidence_of,
    judged,
    plan_of,
    planned_phone,
    wire_scenario,
)
from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import LIMIT_BYTES, LOADED_BYTES, MIB, STATE_BYTES, Row, Spec

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.verdict.judge import PhoneCase

ALLOWED_BYTES = int(LIMIT_BYTES * 0.8)


class HungryApp(App):
    """Holds a gigabyte and a half too much from its 100th token on, and frees it at its 200th."""

    def memory(self) -> dict[str, int]:
        extra = 1536 * MIB if 100 <= self.tokens_total < 200 else 0
        return {"footprint": self.footprint + extra, "host_bytes": 0}


class BallastApp(HungryApp):
    """The same memory, declared as the scenario's ballast."""

    def sample_fields(self) -> Row:
        ballast = 1536 * MIB if 100 <= self.tokens_total < 200 else 0
        return {**super().sample_fields(), "ballast": ballast}


def ballast_case(spec: Spec) -> PhoneCase:
    scenario = wire_scenario(spec)
    scenario["ballast"] = [
        {
            "from_token": 100,
            "to_token": 150,
            "to_percent": 96,
            "release": "evict",
            "hold_tokens": 60,
        }
    ]
    return case_of(spec, plan=plan_of(spec, scenario=scenario))


def test_a_footprint_over_the_headroom_fails_on_its_record() -> None:
    app = HungryApp()
    check = check_of(judged(app), "memory.peak")
    assert (check.result, check.unit, check.limit) == ("fail", "bytes", ALLOWED_BYTES)
    assert check.value == LOADED_BYTES + STATE_BYTES + 1536 * MIB
    assert check.seq is not None
    assert app.records[check.seq - 1]["footprint"] == check.value


def test_ballast_of_the_scenario_is_taken_off() -> None:
    app = BallastApp()
    check = check_of(judge(ballast_case(app.spec), encode(app.run())), "memory.peak")
    assert (check.result, check.value) == ("pass", LOADED_BYTES + STATE_BYTES)


def test_memory_that_is_not_declared_as_ballast_fails_in_spite_of_a_ramp() -> None:
    app = HungryApp()
    check = check_of(judge(ballast_case(app.spec), encode(app.run())), "memory.peak")
    assert check.result == "fail"


def test_a_peak_that_only_the_host_saw_fails() -> None:
    check = check_of(
        judged(App(), evidence=evidence_of(peak_observed_bytes=2600 * MIB)), "memory.peak"
    )
    assert (check.result, check.value, check.seq) == ("fail", 2600 * MIB, None)


def test_a_limit_that_the_phone_does_not_say_leaves_the_peak_unmeasured() -> None:
    app = App()
    records = app.run()
    records[0]["available"] = 0
    check = check_of(judge(case_of(), encode(records)), "memory.peak")
    assert check.result == "unmeasured"


@pytest.mark.parametrize(
    ("calibrated_bytes", "result"),
    [(LIMIT_BYTES, "pass"), (LIMIT_BYTES + 4 * MIB, "pass"), (LIMIT_BYTES - 400 * MIB, "fail")],
)
def test_a_limit_that_is_not_the_calibrated_one_fails(calibrated_bytes: int, result: str) -> None:
    app = App()
    phone = planned_phone(app.spec)
    expected = structs.replace(phone.expected, limit_bytes=calibrated_bytes)
    phone = structs.replace(phone, expected=expected)
    check = check_of(judged(app, phone=phone), "memory.peak")
    assert check.result == result
    if result == "fail":
        assert "calibration measured" in str(check.reason)
        assert check.seq == 1


class InvisibleStateApp(App):
    """The state's memory is nowhere in the footprint, as in a ledger of the Neural Engine."""

    def memory(self) -> dict[str, int]:
        return {"footprint": min(self.footprint, LOADED_BYTES), "host_bytes": 0}


def frees_memory(app: App, *, virtual: bool) -> CheckDocument:
    case = case_of(app.spec)
    phone = planned_phone(app.spec)
    changed = {name: getattr(phone, name) for name in phone.__struct_fields__}
    real = type(phone)(**{**changed, "virtual": virtual})
    case = case_of(app.spec, phone=real, plan=case.plan)
    return check_of(judge(case, encode(app.run())), "evict.frees-memory")


def test_memory_that_no_ledger_shows_is_skipped_with_the_reason() -> None:
    check = frees_memory(InvisibleStateApp(), virtual=False)
    assert check.result == "skipped"
    assert check.reason
    assert check.reason.startswith("no visible ledger")


def test_a_virtual_phone_always_shows_its_memory() -> None:
    assert frees_memory(InvisibleStateApp(), virtual=True).result == "fail"


class SlowlyFreeingApp(App):
    """Keeps a part of the state at each eviction."""

    kept_bytes = 0

    def write_state(self, action: str, purpose: str) -> None:
        kept = self.kept_bytes if purpose == "evict" else 0
        self.footprint += kept
        super().write_state(action, purpose)
        self.footprint -= kept


@pytest.mark.parametrize(
    ("kept_bytes", "result"),
    [(0, "pass"), (33 * MIB, "pass"), (35 * MIB, "fail"), (STATE_BYTES, "fail")],
)
def test_three_quarters_of_the_state_less_a_few_pages_must_go(kept_bytes: int, result: str) -> None:
    app = SlowlyFreeingApp()
    app.kept_bytes = kept_bytes
    assert check_of(judged(app), "evict.frees-memory").result == result


@pytest.mark.parametrize("check_id", ["budget.matches-device", "quant.matches-device"])
@pytest.mark.parametrize(
    ("device", "reason"),
    [
        (None, "was not measured"),
        (device_of(physical_memory_bytes=None, memory_class=None), "was not measured"),
        (device_of(physical_memory_bytes=5_917_753_344), "measures as 6gb"),
        (device_of(physical_memory_bytes=2_000_000_000), "measures as below 6gb"),
    ],
)
def test_a_class_that_is_not_certain_leaves_the_choice_unmeasured(
    check_id: str, device: object, reason: str
) -> None:
    check = check_of(judged(App(), device=device), check_id)
    assert check.result == "unmeasured"
    assert reason in (check.reason or "")


def test_the_class_by_product_type_serves_where_memory_was_not_read() -> None:
    device = device_of(physical_memory_bytes=None)
    assert check_of(judged(App(), device=device), "budget.matches-device").result == "pass"


def test_a_declared_budget_of_another_class_fails() -> None:
    app = App(Spec(budget=32))
    check = check_of(
        judge(case_of(phone=planned_phone(Spec())), encode(app.run())), "budget.matches-device"
    )
    assert (check.result, check.value, check.limit) == ("fail", 32, 64)


@pytest.mark.parametrize(
    ("key", "value", "shown"), [("digest", "ef" * 32, 8.0), ("bits_per_weight", 4.5, 4.5)]
)
def test_another_package_than_the_phone_needs_fails(key: str, value: object, shown: float) -> None:
    records = App().run()
    load = next(row for row in records if row["kind"] == "load")
    load[key] = value
    check = check_of(judge(case_of(), encode(records)), "quant.matches-device")
    assert (check.result, check.value, check.limit) == ("fail", shown, 8.0)


def test_what_hello_says_of_its_quantization_decides_nothing() -> None:
    records = App().run()
    records[0]["quantization"] = "int4"
    assert check_of(judge(case_of(), encode(records)), "quant.matches-device").result == "pass"


def test_the_own_model_of_an_app_that_was_given_is_unmeasured() -> None:
    case = case_of()
    given = msgspec.structs.replace(
        case.plan, app=msgspec.structs.replace(case.plan.app, kind="supplied")
    )
    records = App().run()
    records[0]["engine"] = "custom"
    next(row for row in records if row["kind"] == "load")["digest"] = "0" * 64
    for plan, result in ((given, "unmeasured"), (case.plan, "fail")):
        judged = judge(dataclasses.replace(case, plan=plan), encode(records))
        assert check_of(judged, "quant.matches-device").result == result


def test_a_model_that_was_never_loaded_is_unmeasured() -> None:
    records = [row for row in App().run() if row["kind"] != "load"]
    check = check_of(judge(case_of(), encode(records)), "quant.matches-device")
    assert check.result == "unmeasured"


def test_a_padded_chunk_beyond_the_capacity_fails() -> None:
    records = App().run()
    chunk = next(row for row in records if row["kind"] == "prefill")
    chunk["pad"] = 5000
    check = check_of(judge(case_of(), encode(records)), "budget.never-exceeded")
    assert check.result == "fail"
    assert "capacity" in (check.reason or "")
