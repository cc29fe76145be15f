"""Faults of the phone's state: disk, installer, clock, battery, reports."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from orchestrator.virtual.faults.base import Fault
from orchestrator.virtual.kernel.reports import ReportMode
from orchestrator.virtual.settings import (
    CHARGE_PERCENT_PER_MIN,
    DRAIN_PERCENT_PER_MIN,
    InstallRefusal,
)

if TYPE_CHECKING:
    from orchestrator.virtual.faults.base import Stage, Undo

_APP: Final = "/private/var/installd/Library/Caches/com.apple.mobile.installd.staging/temp/App.app"
_VERIFICATION: Final = "ApplicationVerificationFailed"

# The codes are MobileDevice's; the sentences are what phones send with them.
_REFUSALS: Final = {
    "signature": InstallRefusal(
        _VERIFICATION,
        f"Failed to verify code signature of {_APP} : 0xe8008018 (The identity used to sign the"
        " executable is no longer valid.)",
    ),
    "profile_expired": InstallRefusal(
        _VERIFICATION,
        f"Failed to verify code signature of {_APP} : 0xe8008011 (This provisioning profile has"
        " expired.)",
    ),
    "profile_missing": InstallRefusal(
        _VERIFICATION,
        f"Failed to verify code signature of {_APP} : 0xe8008015 (A valid provisioning profile for"
        " this executable was not found.)",
    ),
    "wrong_slice": InstallRefusal(
        "IncorrectArchitecture", f"Failed to find matching arch for input file: {_APP}/App"
    ),
    "no_space": InstallRefusal(
        "InsufficientSpace", "There is not enough space on the device to install the app."
    ),
}


class DiskFull(Fault, frozen=True, tag="disk_full"):
    """Let `at_byte` more bytes be written over AFC; what goes beyond finds the disk full."""

    at_byte: int = 0

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102 - of the base
        storage = stage.phone.settings.storage
        storage.room_bytes = max(0, self.at_byte)

        def restore() -> None:
            storage.room_bytes = None

        return restore


class InstallError(Fault, frozen=True, tag="install_error"):
    """Make every install fail at its verification."""

    reason: Literal["signature", "profile_expired", "profile_missing", "wrong_slice", "no_space"]

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        settings = stage.phone.settings
        settings.install_refusal = _REFUSALS[self.reason]

        def restore() -> None:
            settings.install_refusal = None

        return restore


class ClockSkew(Fault, frozen=True, tag="clock_skew"):
    """Set the phone's clock ahead, or back where negative; apps keep the host's."""

    seconds: float

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        clock = stage.phone.settings.clock
        clock.skew_s += self.seconds

        def restore() -> None:
            clock.skew_s -= self.seconds

        return restore


class BatteryDrain(Fault, frozen=True, tag="battery_drain"):
    """Let the battery lose `percent_per_min`, from `from_percent` on if that is given."""

    percent_per_min: float = 1.0
    from_percent: float | None = None

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        battery, machine = stage.phone.settings.battery, stage.phone.machine
        was_charging = battery.charging
        rate = -abs(self.percent_per_min)
        battery.change(self.from_percent, charging=False, percent_per_min=rate)
        machine.tell_battery()

        def restore() -> None:
            usual = CHARGE_PERCENT_PER_MIN if was_charging else DRAIN_PERCENT_PER_MIN
            battery.change(charging=was_charging, percent_per_min=usual)
            machine.tell_battery()

        return restore


class LowPower(Fault, frozen=True, tag="low_power"):
    """Switch Low Power Mode on."""

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        stage.phone.machine.set_low_power(value=True)
        return lambda: stage.phone.machine.set_low_power(value=False)


class Reports(Fault, frozen=True, tag="reports"):
    """Write reports otherwise: damaged, in two halves, late, synced, retired, few, or not at all.

    Attributes:
        mode: `whole`, `half`, `corrupt` and `missing` hold for reports from now on; `synced` also
            renames those that are there, `retired` moves them.
        delay_s: From a death to its file.
        limit_per_day: JetsamEvents for the per-process limit; later kills leave none.
    """

    mode: Literal["whole", "half", "corrupt", "missing", "synced", "retired"] = "whole"
    delay_s: float | None = None
    limit_per_day: int | None = None

    async def begin(self, stage: Stage) -> Undo | None:  # noqa: D102
        policy, folder = stage.phone.settings.reports, stage.phone.machine.kernel.reports
        before = replace(policy)
        policy.seed = stage.seed
        if self.delay_s is not None:
            policy.delay_s = self.delay_s
        if self.limit_per_day is not None:
            policy.limit_per_day = self.limit_per_day
        if self.mode == "retired":
            folder.retire_all()
        elif self.mode == "synced":
            policy.synced = True
            folder.sync_all()
        else:
            policy.mode = ReportMode(self.mode)

        def restore() -> None:
            policy.mode, policy.synced = before.mode, before.synced
            policy.delay_s, policy.limit_per_day = before.delay_s, before.limit_per_day

        return restore
