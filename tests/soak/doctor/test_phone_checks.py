from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.device.facts import ClockReading, PhoneFacts
from orchestrator.domain.outcome import ExitCode
from orchestrator.soak.doctor.check import (
    HOST,
    DoctorCheck,
    State,
    diagnosis_of,
    exit_code_of,
    failed,
    ok,
    unknown,
    warning,
)
from orchestrator.soak.doctor.phones import Known, absent_phone, mute_phone, phone_checks
from orchestrator.soak.gate import GateLimits
from orchestrator.soak.ledger import Quarantine
from orchestrator.soak.locks import Owner
from tests.device.phones import phone
from tests.device.scripted import HEALTHY

LIMITS = GateLimits(min_battery_percent=30, max_start_thermal="nominal", model_bytes=1 << 30)
WELL = replace(HEALTHY, temperature_c=28.0, battery_current_ma=900)


def checks(
    facts: PhoneFacts = WELL, known: Known | None = None, os: str = "18.6"
) -> dict[str, DoctorCheck]:
    found = phone_checks(phone(os=os), facts, LIMITS, known or Known())
    return {check.name: check for check in found}


def test_a_healthy_phone_could_start_and_what_nobody_can_read_is_said() -> None:
    found = checks()
    states = {check.state for check in found.values()}
    assert states == {State.OK, State.UNKNOWN}
    unread = {name for name, check in found.items() if check.state is State.UNKNOWN}
    assert unread == {"auto-lock", "low-power", "last-unlock"}
    assert diagnosis_of(list(found.values()), phones_wanted=True).can_start


@pytest.mark.parametrize(
    ("facts", "name", "reason"),
    [
        (replace(WELL, locked=True), "lock", "locked"),
        (replace(WELL, developer_mode=False), "developer-mode", "developer_mode_off"),
        (replace(WELL, ddi_mounted=False), "developer-image", "ddi_not_mounted"),
        (replace(WELL, battery_percent=12), "battery", "battery_low"),
        (replace(WELL, temperature_c=38.5), "temperature", "too_warm"),
        (replace(WELL, free_disk_bytes=1 << 30), "phone-disk", "disk_full"),
    ],
)
def test_what_the_gate_refuses_the_doctor_names(facts: PhoneFacts, name: str, reason: str) -> None:
    check = checks(facts)[name]
    assert (check.state, check.reason) == (State.FAILED, reason)
    assert check.remedy
    assert not diagnosis_of([check], phones_wanted=True).can_start


@pytest.mark.parametrize(
    ("facts", "name", "reason"),
    [
        (replace(WELL, charging=False), "charge", "not_charging"),
        (replace(WELL, battery_current_ma=-300), "charge", "draining"),
        (replace(WELL, clock=ClockReading(3600.0, 0.1)), "clock", "clock_offset"),
    ],
)
def test_what_forbids_no_start_is_a_warning(facts: PhoneFacts, name: str, reason: str) -> None:
    check = checks(facts)[name]
    assert (check.state, check.reason) == (State.WARNING, reason)
    assert diagnosis_of([check], phones_wanted=True).can_start


def test_what_the_lab_knows_is_told() -> None:
    owner = Owner("ann", 7, "run-1", "bench-01", 0.0, 9e9)
    held = Quarantine("cracked port", 0.0, 9e9, automatic=False)
    found = checks(
        known=Known(by_wifi_too=True, last_build="22F76", quarantine=held, held_by=owner)
    )
    assert found["wifi"].reason == "wifi_duplicate"
    assert found["build"].reason == "build_changed"
    assert "cracked port" in found["quarantine"].facts
    assert "run run-1 of ann" in found["lock-of-runs"].facts


@pytest.mark.parametrize(
    ("os", "tunneld", "state"),
    [
        ("17.3.1", None, State.FAILED),
        ("17.3.1", "127.0.0.1:49151", State.OK),
        ("17.4", None, State.OK),
        ("18", None, State.OK),
    ],
)
def test_each_phone_has_a_tunnel_plan(os: str, tunneld: str | None, state: State) -> None:
    assert checks(known=Known(tunneld=tunneld), os=os)["tunnel"].state is state


@pytest.mark.parametrize(
    ("check", "code"),
    [
        (mute_phone("UDID", "no answer"), ExitCode.NO_PHONE),
        (absent_phone("bench-02"), ExitCode.NO_PHONE),
        (failed(HOST, "usbmuxd", "-", "usbmuxd_dead", "-"), ExitCode.NO_PHONE),
        (failed(HOST, "toolchain", "-", "no_xcode", "-"), ExitCode.BUILD),
        (failed(HOST, "disk", "-", "disk_full", "-"), ExitCode.INCONCLUSIVE),
        (failed("bench-01", "lock-of-runs", "-", "held", "-"), ExitCode.HELD),
        (warning("bench-01", "charge", "-", "draining"), ExitCode.OK),
        (unknown("bench-01", "auto-lock", "-", "-"), ExitCode.OK),
    ],
)
def test_the_exit_code_is_that_of_a_soak(check: DoctorCheck, code: ExitCode) -> None:
    found = [ok("bench-01", "paired", "-"), check]
    assert exit_code_of(diagnosis_of(found, phones_wanted=True)) is code


def test_without_a_phone_no_soak_could_start() -> None:
    host = [ok(HOST, "python", "3.11")]
    assert exit_code_of(diagnosis_of(host, phones_wanted=True)) is ExitCode.NO_PHONE
    assert exit_code_of(diagnosis_of(host, phones_wanted=False)) is ExitCode.OK
