"""One run as history keeps it: who ran what, under which conditions, with which numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Final


@dataclass(frozen=True, slots=True)
class Stamps:
    """What must be equal before two phones' numbers may be compared; "unknown" equals itself."""

    model: str
    os_build: str
    model_digest: str
    thermal_start: str
    charging: str  # "yes", "no", "unknown"
    low_power: str
    engine: str
    entitled: str
    scenario: str  # name and short hash of everything in it but the seed
    app: str  # "swift", "stand-in", "supplied"
    virtual: str

    def differences(self, other: Stamps) -> list[str]:
        """Return one phrase per stamp that differs, this one's value first."""
        return [
            f"{LABELS[name]} {getattr(self, name)} against {getattr(other, name)}"
            for name in STAMP_NAMES
            if getattr(self, name) != getattr(other, name)
        ]


STAMP_NAMES: Final = tuple(stamp.name for stamp in fields(Stamps))
LABELS: Final = {
    "model": "model",
    "os_build": "OS build",
    "model_digest": "model digest",
    "thermal_start": "thermal state at the start",
    "charging": "charger",
    "low_power": "low power mode",
    "engine": "engine",
    "entitled": "memory entitlement",
    "scenario": "scenario",
    "app": "app",
    "virtual": "virtual phone",
}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check said."""

    id: str
    result: str
    value: float | None = None  # None where the check gives a text or nothing
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class PhoneEntry:
    """One phone of one run."""

    udid: str
    alias: str
    os: str
    app_build: str
    stamps: Stamps
    outcome: str
    cause: str
    measures: dict[str, float] = field(default_factory=dict)  # names of `domain.measures`
    checks: tuple[CheckResult, ...] = ()
    app_sha256: str = "unknown"  # of the package that was installed
    app_commit: str = "unknown"
    host: str = ""  # of the cluster, empty on a single host

    def check(self, check_id: str) -> CheckResult | None:
        """Return the result of a check, None where the run did not have it."""
        return next((check for check in self.checks if check.id == check_id), None)


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One run."""

    run_id: str
    started_s: float  # Unix seconds
    outcome: str
    exit_code: int
    folder: str  # where the run directory was
    phones: tuple[PhoneEntry, ...]
