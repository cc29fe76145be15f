"""What a person or a fault could change on a phone: battery, locks, trust, storage, services.

The daemons read it at every request, so a test or a fault script changes it while they run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.kernel import ThermalLevel
from orchestrator.virtual.kernel.clock import PhoneClock
from orchestrator.virtual.kernel.reports import ReportPolicy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from orchestrator.virtual.services.afc.lies import AfcLies
    from orchestrator.virtual.tampering import Tampering
    from orchestrator.virtual.wire import Stream

GIB: Final = 1 << 30
CHARGE_PERCENT_PER_MIN: Final = 0.5
DRAIN_PERCENT_PER_MIN: Final = -0.1
REPORT_DELAY_S: Final = 3.0  # from a death to its file; a phone takes seconds to minutes


class TrustAnswer(StrEnum):
    """What the phone says when a host asks to be paired."""

    TRUST = ""
    PENDING = "PairingDialogResponsePending"
    DENIED = "UserDeniedPairing"
    LOCKED = "PasswordProtected"


@dataclass(slots=True)
class Battery:
    """Battery as lockdown and the IORegistry report it.

    It charges on the cable and drains without; the level is worked out when somebody asks.
    """

    start_percent: float = 87.0
    charging: bool = True
    percent_per_min: float = CHARGE_PERCENT_PER_MIN
    temperature_centi_c: int = 2950  # hundredths of a degree Celsius
    voltage_mv: int = 4180
    cycle_count: int = 112
    design_capacity_mah: int = 3279
    full_capacity_mah: int = 3010
    _since_s: float = field(default_factory=time.monotonic)

    @property
    def level_percent(self) -> int:
        """Level now, 0 to 100."""
        moved = self.percent_per_min * (time.monotonic() - self._since_s) / 60
        return int(min(100.0, max(0.0, self.start_percent + moved)))

    @property
    def current_ma(self) -> int:
        """Current into the battery; negative while it drains."""
        if self.charging:
            return 0 if self.level_percent >= 100 else 1150
        return -310

    def change(
        self, level_percent: float | None = None, *, charging: bool, percent_per_min: float
    ) -> None:
        """Set how the level moves from now on, and the level itself unless it is None."""
        now_percent = self.level_percent if level_percent is None else level_percent
        self.start_percent, self._since_s = now_percent, time.monotonic()
        self.charging, self.percent_per_min = charging, percent_per_min


@dataclass(slots=True)
class Storage:
    """The disk: files lie on the host's; this is what the phone says, and when it is full."""

    capacity_bytes: int = 128 * GIB
    usual_free_bytes: int = 60 * GIB
    room_bytes: int | None = None  # until the disk is full; None for as much as the host has
    cut_after_bytes: int | None = None  # written over AFC until `on_cut`; None for never
    on_cut: Callable[[], None] | None = None

    @property
    def free_bytes(self) -> int:
        """What the phone says is free."""
        return self.usual_free_bytes if self.room_bytes is None else self.room_bytes

    def take(self, count: int) -> int:
        """Take room for a write; return how many of its bytes fit."""
        if self.room_bytes is None:
            return count
        fitting = min(count, self.room_bytes)
        self.room_bytes -= fitting
        return fitting

    def until_cut(self, count: int) -> int:
        """Count a write; return how many of its bytes come before the cut."""
        if self.cut_after_bytes is None:
            return count
        before = min(count, self.cut_after_bytes)
        self.cut_after_bytes -= before
        return before

    def cut(self) -> None:
        """Let happen what was to happen at the cut, once."""
        act, self.on_cut, self.cut_after_bytes = self.on_cut, None, None
        if act is not None:
            act()


@dataclass(frozen=True, slots=True)
class InstallRefusal:
    """How the installer fails from now on: installation_proxy's error and its description."""

    code: str
    text: str


@dataclass(slots=True)
class Settings:
    """Mutable state of one phone."""

    name: str  # DeviceName
    battery: Battery = field(default_factory=Battery)
    storage: Storage = field(default_factory=Storage)
    clock: PhoneClock = field(default_factory=PhoneClock)
    reports: ReportPolicy = field(default_factory=lambda: ReportPolicy(delay_s=REPORT_DELAY_S))
    trust: TrustAnswer = TrustAnswer.TRUST
    locked: bool = False  # launches are refused, as with a passcode
    before_first_unlock: bool = False  # since the boot: files and services are closed too
    developer_mode: bool = True
    image_mounted: bool = True  # the developer disk image
    install_refusal: InstallRefusal | None = None
    apps_listen: bool = True  # whether hosts reach the ports of apps
    thermal: ThermalLevel = ThermalLevel.NOMINAL
    low_power: bool = False
    network_profile: str | None = None  # of the condition inducer
    location: tuple[float, float] | None = None  # simulated latitude and longitude
    muted: set[str] = field(default_factory=set)  # services that accept and never answer
    afc_lies: AfcLies | None = None
    impostor: Callable[[Stream], Awaitable[None]] | None = None  # in place of all apps
    tampering: dict[str, Tampering] = field(default_factory=dict)  # by service

    @property
    def offers_development(self) -> bool:
        """Whether developer services are there: the mode is on and the image is mounted."""
        return self.developer_mode and self.image_mounted
