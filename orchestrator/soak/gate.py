"""Whether a phone is fit for a soak: pure, with the typed reason and the human remedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.domain.outcome import Cause
from orchestrator.runlog.documents import HealthDocument

if TYPE_CHECKING:
    from orchestrator.device.facts import PhoneFacts


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a phone may not start."""

    facts: str
    cause: Cause
    remedy: str


def refusal(facts: PhoneFacts, min_battery_percent: float) -> Refusal | None:
    """Return the first reason against a start; what a phone did not say is no reason."""
    if facts.locked:
        return Refusal(
            "the phone is locked",
            Cause.DEVICE_LOCKED,
            "Unlock it; lab phones need no passcode and Auto-Lock set to Never",
        )
    if facts.developer_mode is False:
        return Refusal(
            "Developer Mode is off",
            Cause.NOT_READY,
            "Turn it on in Settings > Privacy & Security > Developer Mode",
        )
    if facts.ddi_mounted is False:
        return Refusal(
            "the developer disk image is not mounted",
            Cause.NOT_READY,
            "Run `pymobiledevice3 mounter auto-mount` or open Xcode once with the phone attached",
        )
    if facts.battery_percent is not None and facts.battery_percent < min_battery_percent:
        return Refusal(
            f"the battery is at {facts.battery_percent} %, below {min_battery_percent:g} %",
            Cause.NOT_READY,
            "Let it charge, or lower gate.min_battery_percent",
        )
    return None


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
        refusal=problem.facts if problem else None,
        remedy=problem.remedy if problem else None,
    )
