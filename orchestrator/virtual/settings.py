"""What a person could change on a phone: battery, locks, trust, developer mode, services.

The daemons read it at every request, so a test or a fault script changes it while they run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

GIB: Final = 1 << 30


class TrustAnswer(StrEnum):
    """What the phone says when a host asks to be paired."""

    TRUST = ""
    PENDING = "PairingDialogResponsePending"
    DENIED = "UserDeniedPairing"
    LOCKED = "PasswordProtected"


@dataclass(slots=True)
class Battery:
    """Battery as lockdown and the IORegistry report it."""

    level_percent: int = 87
    charging: bool = True
    temperature_centi_c: int = 2950  # hundredths of a degree Celsius
    voltage_mv: int = 4180
    current_ma: int = -310
    cycle_count: int = 112
    design_capacity_mah: int = 3279
    full_capacity_mah: int = 3010


@dataclass(slots=True)
class Settings:
    """Mutable state of one phone."""

    name: str  # DeviceName
    battery: Battery = field(default_factory=Battery)
    trust: TrustAnswer = TrustAnswer.TRUST
    locked: bool = False  # launches are refused, as with a passcode
    developer_mode: bool = True
    image_mounted: bool = True  # the developer disk image
    capacity_bytes: int = 128 * GIB
    free_bytes: int = 60 * GIB
    report_delay_s: float = 3.0  # the longest from a death to its report; told to hosts
    muted: set[str] = field(default_factory=set)  # services that accept and never answer
