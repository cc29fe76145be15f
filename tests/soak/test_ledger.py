from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.soak.incidents import Loss, hub_incidents
from orchestrator.soak.ledger import (
    Ledger,
    PhoneNote,
    Quarantine,
    QuarantinePolicy,
    after_session,
)
from orchestrator.soak.plan import part_quarantined
from tests.device.phones import phone

if TYPE_CHECKING:
    from pathlib import Path

POLICY = QuarantinePolicy(after_lab_errors=2, for_hours=1.0)
NOTE = PhoneNote("UDID", "bench-01")


def test_lab_errors_in_a_row_lead_to_quarantine() -> None:
    once = after_session(NOTE, "unplugged", POLICY, 10.0)
    assert (once.lab_errors, once.quarantine) == (1, None)
    twice = after_session(once, "locked", POLICY, 20.0)
    assert twice.quarantine == Quarantine(
        "2 lab errors in a row, the last: locked", 20.0, 3620.0, automatic=True
    )
    assert twice.lab_errors == 0


def test_a_session_of_the_product_ends_the_row() -> None:
    once = after_session(NOTE, "unplugged", POLICY, 10.0)
    assert after_session(once, None, POLICY, 20.0).lab_errors == 0


def test_a_quarantine_is_over_at_its_hour() -> None:
    quarantine = Quarantine("bad port", 0.0, 100.0, automatic=False)
    assert quarantine.holds(99.9)
    assert not quarantine.holds(100.0)


def test_the_ledger_remembers_between_processes(tmp_path: Path) -> None:
    for at_s in (1.0, 2.0):
        Ledger(tmp_path / "s").session_ended("U", "bench", "22F76", "mute", POLICY, at_s)
    ledger = Ledger(tmp_path / "s")
    assert ledger.build_of("U") == "22F76"
    assert list(ledger.quarantined(3.0)) == ["U"]
    assert ledger.quarantined(4000.0) == {}
    ledger.take_out("U", "bench")
    assert ledger.quarantined(3.0) == {}
    assert (tmp_path / "s" / "phones.json").stat().st_mode & 0o777 == 0o600


def test_only_a_new_quarantine_is_told(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "s")
    ledger.put_in("U", "bench", Quarantine("by hand", 0.0, 9e9, automatic=False))
    assert ledger.session_ended("U", "bench", None, "mute", POLICY, 1.0) is None
    assert ledger.session_ended("U", "bench", None, "mute", POLICY, 2.0) is not None


def test_a_damaged_ledger_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "phones.json").write_text("{")
    with pytest.raises(UsageError, match="Delete it"):
        Ledger(tmp_path).notes()


def test_phones_lost_within_seconds_are_one_incident() -> None:
    a, b, c = Loss("A", "a", 100.0), Loss("B", "b", 103.0), Loss("C", "c", 150.0)
    assert hub_incidents([c, b, a]) == [[a, b]]
    assert hub_incidents([a, c]) == []
    assert hub_incidents([]) == []


def test_a_quarantined_phone_is_skipped_and_an_expected_one_is_missing() -> None:
    first, second, third = (phone(udid=f"00008110-00000000000000{n}A") for n in (1, 2, 3))
    held = Quarantine("cracked port", 0.0, 9e9, automatic=False)
    parted = part_quarantined(
        [first, second, third], {first.udid: held, second.udid: held}, {second.udid}
    )
    assert parted.phones == (third,)
    assert [(entry.phone, entry.reason) for entry in parted.skipped] == [
        (first, "in quarantine: cracked port")
    ]
    assert [entry.udid for entry in parted.absent] == [second.udid]
