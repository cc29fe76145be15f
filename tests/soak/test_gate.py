from dataclasses import replace

import pytest

from orchestrator.device.facts import PhoneFacts
from orchestrator.domain.outcome import Cause
from orchestrator.soak.gate import GateLimits, Reason, refusal, refusals

FIT = PhoneFacts(
    name="A phone",
    product_type="iPhone17,3",
    os="18.5",
    build="22F76",
    serial=None,
    wifi=None,
    battery_percent=80,
    charging=True,
    free_disk_bytes=1 << 36,
    developer_mode=True,
    ddi_mounted=True,
    locked=False,
    clock=None,
    virtual=None,
)

LIMITS = GateLimits(
    min_battery_percent=30.0,
    max_start_thermal="nominal",
    model_bytes=1 << 30,
    cool_down_limit_s=900.0,
    charge_limit_s=1800.0,
    unlock_limit_s=60.0,
)


def test_a_fit_phone_may_start() -> None:
    assert refusal(FIT, LIMITS) is None


def test_what_a_phone_did_not_say_is_no_reason() -> None:
    silent = replace(FIT, battery_percent=None, developer_mode=None, ddi_mounted=None, locked=None)
    assert refusal(silent, LIMITS) is None


@pytest.mark.parametrize(
    ("facts", "cause", "words"),
    [
        (replace(FIT, locked=True), Cause.DEVICE_LOCKED, "locked"),
        (replace(FIT, developer_mode=False), Cause.NOT_READY, "Developer Mode"),
        (replace(FIT, ddi_mounted=False), Cause.NOT_READY, "developer disk image"),
        (replace(FIT, battery_percent=29), Cause.NOT_READY, "at 29 %, below 30 %"),
        (replace(FIT, temperature_c=35.0), Cause.NOT_READY, "35.0 C, not under 35 C"),
        (replace(FIT, free_disk_bytes=3 << 29), Cause.NOT_READY, "1536.00 MiB are free, 3072.00"),
    ],
)
def test_each_reason_has_its_cause_and_a_remedy(
    facts: PhoneFacts, cause: Cause, words: str
) -> None:
    found = refusal(facts, LIMITS)
    assert found is not None
    assert found.cause is cause
    assert words in found.facts
    assert found.remedy


@pytest.mark.parametrize(
    ("facts", "wait_s"),
    [
        (replace(FIT, locked=True), 60.0),
        (replace(FIT, temperature_c=41.0), 900.0),
        (replace(FIT, battery_percent=5, charging=True), 1800.0),
        (replace(FIT, battery_percent=5, charging=False), 0.0),
        (replace(FIT, developer_mode=False), 0.0),
        (replace(FIT, ddi_mounted=False), 0.0),
        (replace(FIT, free_disk_bytes=0), 0.0),
    ],
)
def test_only_what_mends_itself_is_waited_for(facts: PhoneFacts, wait_s: float) -> None:
    found = refusal(facts, LIMITS)
    assert found is not None
    assert found.wait_s == wait_s


@pytest.mark.parametrize(("state", "refused"), [("nominal", True), ("fair", False)])
def test_the_thermal_state_that_may_start_is_configured(state: str, refused: bool) -> None:
    limits = replace(LIMITS, max_start_thermal=state)
    assert (refusal(replace(FIT, temperature_c=36.0), limits) is not None) is refused


def test_all_reasons_are_told_those_for_a_person_first() -> None:
    facts = replace(FIT, battery_percent=5, locked=True, developer_mode=False)
    found = [problem.reason for problem in refusals(facts, LIMITS)]
    assert found == [Reason.DEVELOPER_MODE_OFF, Reason.LOCKED, Reason.BATTERY_LOW]
