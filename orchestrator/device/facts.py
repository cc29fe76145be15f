"""What a phone says about itself when asked: passive values, all of them hostile or missing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PhoneFacts:
    """Lockdown values of one phone; None where the phone did not say."""

    name: str
    product_type: str
    os: str
    build: str
    serial: str | None
    wifi: str | None  # MAC address
    battery_percent: int | None
    charging: bool | None
    free_disk_bytes: int | None
    developer_mode: bool | None
    ddi_mounted: bool | None  # the developer disk image; once per boot
    locked: bool | None  # a passcode stands between us and a launch
    clock: ClockReading | None
    virtual: VirtualFacts | None  # None on a real phone
    temperature_c: float | None = None  # of the battery
    battery_current_ma: int | None = None  # below 0 it is being emptied


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The phone's clock against ours; lockdown's ``TimeIntervalSince1970``."""

    offset_s: float  # phone minus host
    uncertainty_s: float  # half the round trip of the question


@dataclass(frozen=True, slots=True)
class VirtualFacts:
    """What only a virtual phone answers, from the lockdown domain ``dev.fleet.virtual``."""

    memory_scale: int  # phone bytes per host byte
    report_delay_s: float = 3.0  # the longest from a death to its report


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One entry of a folder on a phone."""

    path: str  # as the phone names it, hostile text
    size_bytes: int
    mtime_s: float  # Unix time by the phone's clock
    is_folder: bool


@dataclass(frozen=True, slots=True)
class PulledReport:
    """One crash report copied from a phone."""

    device_path: str  # as the phone names it, hostile text
    local_path: str  # below the folder it was pulled into, sanitised
    size_bytes: int
    mtime_s: float  # Unix time by the phone's clock

    @property
    def key(self) -> str:
        """What `known` holds: an unchanged file has the same path and size."""
        return report_key(self.device_path, self.size_bytes)


def report_key(device_path: str, size_bytes: int) -> str:
    """Return the name under which a pulled report is remembered."""
    return f"{device_path}:{size_bytes}"
