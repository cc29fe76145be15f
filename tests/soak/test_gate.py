from dataclasses import replace

import pytest

from orchestrator.device.facts import PhoneFacts
from orchestrator.domain.outcome import Cause
from orchestrator.soak.gate import refusal

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


def test_a_fit_phone_may_start() -> None:
    assert refusal(FIT, 30.0) is None


def test_what_a_phone_did_not_say_is_no_reason() -> None:
    silent = replace(FIT, battery_percent=None, developer_mode=None, ddi_mounted=None, locked=None)
    assert refusal(silent, 30.0) is None


@pytest.mark.parametrize(
    ("facts", "cause", "words"),
    [
        (replace(FIT, locked=True), Cause.DEVICE_LOCKED, "locked"),
        (replace(FIT, developer_mode=False), Cause.NOT_READY, "Developer Mode"),
        (replace(FIT, ddi_mounted=False), Cause.NOT_READY, "developer disk image"),
        (replace(FIT, battery_percent=29), Cause.NOT_READY, "at 29 %, below 30 %"),
    ],
)
def test_each_reason_has_its_cause_and_a_remedy(
    facts: PhoneFacts, cause: Cause, words: str
) -> None:
    found = refusal(facts, 30.0)
    assert found is not None
    assert found.cause is cause
    assert words in found.facts
    assert found.remedy
