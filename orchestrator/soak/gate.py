"""Whether a phone is fit for a soak: pure, with the typed reason and the human remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from orchestrator.domain.outcome import Cause
from orchestrator.runlog.documents import HealthDocument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.device.facts import PhoneFacts

# Battery temperatures up to which a phone is taken for each thermal state. Lockdown does not tell
# the state itself; the app does, once it runs. Apple names 35 C as the end of the usual range
# (support.apple.com/118431).
_MOST_C: Final = {"nominal": 35.0, "fair": 40.0, "serious": 45.0, "critical": float("inf")}
DISK_FACTOR: Final = 3  # the model, its compiled form, and what iOS wants beside them
_MIB: Final = 1024 * 1024


class Reason(StrEnum):
    """Why a phone may not start. The names are relied on from outside."""

    LOCKED = "locked"
    DEVELOPER_MODE_OFF = "developer_mode_off"
    DDI_NOT_MOUNTED = "ddi_not_mounted"
    BATTERY_LOW = "battery_low"
    TOO_WARM = "too_warm"
    DISK_FULL = "disk_full"


@dataclass(frozen=True, slots=True)
class GateLimits:
    """What a phone must show, and how long it is waited for where waiting helps."""

    min_battery_percent: float = 0.0
    max_start_thermal: str = "critical"
    model_bytes: int = 0
    cool_down_limit_s: float = 0.0
    charge_limit_s: float = 0.0
    unlock_limit_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a phone may not start."""

    reason: Reason
    facts: str
    cause: Cause
    remedy: str
    wait_s: float = 0.0  # how long it may be waited for; 0 where waiting helps nothing


def refusal(facts: PhoneFacts, limits: GateLimits) -> Refusal | None:
    """Return the first reason against a start; what a phone did not say is no reason."""
    return next(refusals(facts, limits), None)


def refusals(facts: PhoneFacts, limits: GateLimits) -> Iterator[Refusal]:
    """Yield all reasons against a start, those that a person must see to first."""
    yield from _access(facts, limits)
    yield from _state(facts, limits)


def _access(facts: PhoneFacts, limits: GateLimits) -> Iterator[Refusal]:
    if facts.developer_mode is False:
        yield Refusal(
            Reason.DEVELOPER_MODE_OFF,
            "Developer Mode is off",
            Cause.NOT_READY,
            "Turn it on in Settings > Privacy & Security > Developer Mode",
        )
    if facts.locked:
        yield Refusal(
            Reason.LOCKED,
            "the phone is locked",
            Cause.DEVICE_LOCKED,
            "Unlock it; lab phones need no passcode and Auto-Lock set to Never",
            wait_s=limits.unlock_limit_s,
        )
    if facts.ddi_mounted is False:
        yield Refusal(
            Reason.DDI_NOT_MOUNTED,
            "the developer disk image is not mounted",
            Cause.NOT_READY,
            "Run `pymobiledevice3 mounter auto-mount` or open Xcode once with the phone attached",
        )


def _state(facts: PhoneFacts, limits: GateLimits) -> Iterator[Refusal]:
    battery = facts.battery_percent
    if battery is not None and battery < limits.min_battery_percent:
        yield Refusal(
            Reason.BATTERY_LOW,
            f"the battery is at {battery} %, below {limits.min_battery_percent:g} %",
            Cause.NOT_READY,
            "Let it charge, or lower gate.min_battery_percent",
            wait_s=limits.charge_limit_s if facts.charging else 0.0,
        )
    most_c = _MOST_C[limits.max_start_thermal]
    if facts.temperature_c is not None and facts.temperature_c >= most_c:
        yield Refusal(
            Reason.TOO_WARM,
            f"the battery has {facts.temperature_c:.1f} C, not under {most_c:g} C",
            Cause.NOT_READY,
            "Let it cool down, or raise gate.max_start_thermal",
            wait_s=limits.cool_down_limit_s,
        )
    needed_bytes = DISK_FACTOR * limits.model_bytes
    if facts.free_disk_bytes is not None and facts.free_disk_bytes < needed_bytes:
        yield Refusal(
            Reason.DISK_FULL,
            f"{facts.free_disk_bytes / _MIB:.2f} MiB are free, "
            f"{needed_bytes / _MIB:.2f} are needed",
            Cause.NOT_READY,
            "Delete something: three times the model must fit",
        )


def health_document(facts: PhoneFacts, problem: Refusal | None, read_at_s: float) -> HealthDocument:
    """Return `health.json` of one reading."""
    return HealthDocument(
        read_at_s=read_at_s,
        battery_percent=facts.battery_percent,
        charging=facts.charging,
        free_disk_bytes=facts.free_disk_bytes,
        developer_mode=facts.developer_mode,
        ddi_mounted=facts.ddi_mounted,
        locked=facts.locked,
        clock_offset_s=facts.clock.offset_s if facts.clock else None,
        clock_uncertainty_s=facts.clock.uncertainty_s if facts.clock else None,
        temperature_c=facts.temperature_c,
        refusal=problem.facts if problem else None,
        remedy=problem.remedy if problem else None,
    )
