"""Checks of one phone, from what it says and what the lab remembers of it: pure."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.soak.doctor.check import failed, ok, unknown, warning
from orchestrator.soak.gate import Reason, refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.device.facts import PhoneFacts
    from orchestrator.domain.phone import Phone
    from orchestrator.soak.doctor.check import DoctorCheck
    from orchestrator.soak.gate import GateLimits
    from orchestrator.soak.ledger import Quarantine
    from orchestrator.soak.locks import Owner

CLOCK_LIMIT_S: Final = 60.0  # beyond it, reports are told from others' by their time alone badly
OWN_TUNNEL_SINCE: Final = (17, 4)
_GIB: Final = 1024**3
_NAMES: Final = {
    Reason.LOCKED: "lock",
    Reason.DEVELOPER_MODE_OFF: "developer-mode",
    Reason.DDI_NOT_MOUNTED: "developer-image",
    Reason.BATTERY_LOW: "battery",
    Reason.TOO_WARM: "temperature",
    Reason.DISK_FULL: "phone-disk",
}


@dataclass(frozen=True, slots=True)
class Known:
    """What the lab knows of a phone besides its own words."""

    tunneld: str | None = None  # configured for its source
    by_wifi_too: bool = False
    last_build: str | None = None
    quarantine: Quarantine | None = None
    held_by: Owner | None = None


def phone_checks(
    phone: Phone, facts: PhoneFacts, limits: GateLimits, known: Known
) -> Iterator[DoctorCheck]:
    """Yield all checks of a phone that answers."""
    alias = phone.alias
    yield ok(alias, "paired", f"{phone.model}, iOS {phone.os}, trusted")
    problems = {problem.reason: problem for problem in refusals(facts, limits)}
    for reason, name in _NAMES.items():
        problem = problems.get(reason)
        if problem is None:
            yield ok(alias, name, _good(reason, facts))
        else:
            yield failed(alias, name, problem.facts, reason.value, problem.remedy)
    yield _slope(alias, facts)
    yield _clock(alias, facts)
    yield _tunnel(phone, known)
    yield _build(phone, known)
    if known.by_wifi_too:
        yield warning(
            alias,
            "wifi",
            "also listed over Wi-Fi",
            "wifi_duplicate",
            "The cable is used; switch Wi-Fi sync off to be sure",
        )
    yield from _taken(alias, known)
    yield from _unreadable(alias)


def mute_phone(udid: str, reason: str) -> DoctorCheck:
    """Return the check of a phone that is attached and does not answer."""
    return failed(udid, "paired", reason, "no_answer", "Unlock it, tap Trust, or plug it in again")


def absent_phone(alias: str) -> DoctorCheck:
    """Return the check of an expected phone that is not there."""
    return failed(
        alias, "attached", "expected, but not attached", "absent", "Plug it in; check hub and cable"
    )


def _good(reason: Reason, facts: PhoneFacts) -> str:
    words = {
        Reason.LOCKED: "unlocked",
        Reason.DEVELOPER_MODE_OFF: "on",
        Reason.DDI_NOT_MOUNTED: "mounted",
        Reason.BATTERY_LOW: _or_unsaid(facts.battery_percent, "%"),
        Reason.TOO_WARM: _or_unsaid(facts.temperature_c, "C"),
        Reason.DISK_FULL: (
            _or_unsaid(None, "")
            if facts.free_disk_bytes is None
            else f"{facts.free_disk_bytes / _GIB:.1f} GiB free"
        ),
    }
    return words[reason]


def _or_unsaid(value: float | None, unit: str) -> str:
    return "the phone does not say" if value is None else f"{value:g} {unit}"


def _slope(alias: str, facts: PhoneFacts) -> DoctorCheck:
    current_ma = facts.battery_current_ma
    if facts.charging is False and (facts.battery_percent or 0) < 100:
        text = "on a cable and not charging"
        return warning(alias, "charge", text, "not_charging", "Check cable and hub power")
    if current_ma is not None and current_ma < 0 and facts.charging:
        text = f"charging, and losing {-current_ma} mA all the same"
        return warning(alias, "charge", text, "draining", "The port gives too little power")
    return ok(alias, "charge", "charging" if facts.charging else "the phone does not say")


def _clock(alias: str, facts: PhoneFacts) -> DoctorCheck:
    if facts.clock is None:
        return ok(alias, "clock", "the phone does not say")
    text = f"{facts.clock.offset_s:+.1f} s against this host"
    if abs(facts.clock.offset_s) > CLOCK_LIMIT_S:
        return warning(alias, "clock", text, "clock_offset", "Set the phone's time automatically")
    return ok(alias, "clock", text)


def _tunnel(phone: Phone, known: Known) -> DoctorCheck:
    numbers = [int(part) for part in phone.os.split(".")[:2] if part.isdigit()]
    own = tuple([*numbers, 0, 0][:2]) >= OWN_TUNNEL_SINCE
    if known.tunneld is not None:
        return ok(phone.alias, "tunnel", f"by tunneld at {known.tunneld}, as configured")
    if own:
        return ok(phone.alias, "tunnel", "its keeper's own, over USB: iOS 17.4 or later")
    return failed(
        phone.alias,
        "tunnel",
        f"iOS {phone.os} has no tunnel over USB without root",
        "needs_tunneld",
        "Run `sudo pymobiledevice3 remote tunneld`, and name it under sources: tunneld",
    )


def _build(phone: Phone, known: Known) -> DoctorCheck:
    if known.last_build in (None, phone.build):
        return ok(phone.alias, "build", phone.build)
    return warning(
        phone.alias,
        "build",
        f"iOS build {phone.build}, {known.last_build} in the last run",
        "build_changed",
        "Mount the developer disk image again; do not compare with runs before",
    )


def _taken(alias: str, known: Known) -> Iterator[DoctorCheck]:
    if known.quarantine is not None:
        until = time.strftime("%Y-%m-%d %H:%M", time.localtime(known.quarantine.until_s))
        yield failed(
            alias,
            "quarantine",
            f"until {until}: {known.quarantine.reason}",
            "quarantined",
            f"Mend it, then `fleet quarantine remove {alias}`",
        )
    if known.held_by is not None:
        yield failed(
            alias,
            "lock-of-runs",
            f"held by {known.held_by.describe()}",
            "held",
            f"Wait for that run, or `fleet unlock {alias} --kick`",
        )


def _unreadable(alias: str) -> Iterator[DoctorCheck]:
    yield unknown(
        alias,
        "auto-lock",
        "no service tells it",
        "Set Settings > Display & Brightness > Auto-Lock to Never",
    )
    yield unknown(
        alias,
        "low-power",
        "only the app can tell: it stands in the records of a run",
        "Switch Low Power Mode off",
    )
    yield unknown(
        alias,
        "last-unlock",
        "no service tells it; a phone that was never unlocked since its boot reads as locked",
        "Lab phones need no passcode; iOS restarts one that was not unlocked for days",
    )
