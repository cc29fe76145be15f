"""Names and settings of faults."""

from __future__ import annotations

import pytest

from orchestrator.virtual.faults.base import FaultError
from orchestrator.virtual.faults.cable import Reboot
from orchestrator.virtual.faults.engine import scripted
from orchestrator.virtual.faults.vocabulary import KINDS, describe_kinds, fault_of, kind_of
from orchestrator.virtual.faults.wiring import Slam

# What the phones must be able to do wrong, as the project's plan lists it.
PLANNED = {
    *("unplug", "replug", "hub_loss", "reboot", "lock", "unlock", "pairing_lost", "trust"),
    *("developer_mode_off", "ddi_unmounted", "mute", "slam", "junk", "oversized", "slow", "stall"),
    *("idle_drop", "disk_full", "install_error", "usbmux_hang", "usbmux_restart"),
    *("wifi_duplicate", "clock_skew", "battery_drain", "heat", "reports", "telemetry_refused"),
    "tunnel_moved",
}


def test_every_planned_fault_is_there() -> None:
    assert KINDS.keys() >= PLANNED


def test_settings_come_as_text_from_a_command_line() -> None:
    assert fault_of("slam", {"service": "x", "at_byte": "100"}) == Slam("x", 100)
    assert fault_of("reboot", {"stays_locked": "true"}) == Reboot(stays_locked=True)


@pytest.mark.parametrize(
    ("kind", "settings", "text"),
    [
        ("explode", {}, "known: background, battery_drain"),
        ("slam", {}, "service"),
        ("slam", {"service": "x", "bytes": 1}, "bytes"),
        ("slam", {"service": "x", "at_byte": "soon"}, "at_byte"),
        ("trust", {"answer": "maybe"}, "maybe"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(
    kind: str, settings: dict[str, object], text: str
) -> None:
    with pytest.raises(FaultError, match=text):
        fault_of(kind, settings)


def test_each_kind_says_what_it_does() -> None:
    told = describe_kinds()
    assert len(told) == len(KINDS)
    assert all(len(text) > 10 and text.endswith(".") for _, text in told)
    assert ("slam service= at_byte=" in [signature for signature, _ in told]) is True


def test_a_script_line_names_phone_kind_and_time() -> None:
    line = scripted({"phone": "vp-01", "at_s": 3, "kind": "slam", "for_s": 2, "service": "x"})
    assert (line.phones, line.at_s, line.for_s, kind_of(line.fault)) == ("vp-01", 3.0, 2.0, "slam")
    nested = scripted({"phone": "a", "at_s": 0, "kind": "slam", "settings": {"service": "x"}})
    assert nested.fault == Slam("x")


@pytest.mark.parametrize(
    "line",
    [
        {"kind": "unplug", "at_s": 1},
        {"phone": "vp-01", "kind": "unplug"},
        {"phone": "vp-01", "kind": "unplug", "at_s": "soon"},
        {"phone": "vp-01", "kind": "unplug", "at_s": 1, "since": "noon"},
        {"phone": "vp-01", "kind": "unplug", "at_s": 1, "why": "x"},
    ],
)
def test_a_script_line_without_them_is_refused(line: dict[str, object]) -> None:
    with pytest.raises(FaultError):
        scripted(line)
