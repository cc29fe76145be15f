"""What a phone was measured to do at first contact, and how it differs from the documented table.

Values only. A calibration holds for a product type, an OS build and an entitlement; numbers that
could not be had are None, and a real phone's never stand for a virtual one's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.domain.iphone import MIB, by_product_type

if TYPE_CHECKING:
    from collections.abc import Iterator

# The app reads limit and footprint in pages; a virtual phone's page is a host page times its scale.
LIMIT_TOLERANCE: Final = 0.01
_MEMORY_TOLERANCE: Final = 0.02


@dataclass(frozen=True, slots=True)
class CalibrationKey:
    """What must be equal for a calibration to hold."""

    product_type: str
    os_build: str
    entitled: bool  # the app holds increased-memory-limit
    virtual: bool


@dataclass(frozen=True, slots=True)
class Deaths:
    """Kills by the kernel that the calibration brought about, and what was left of them."""

    count: int = 0
    exits: tuple[str, ...] = ()  # what the host saw of each, `signal 9`
    reports: int = 0  # JetsamEvents about them
    report_delays_s: tuple[float, ...] = ()  # from each exit to a report in reach, about 1 s coarse

    @property
    def quota_per_day(self) -> int | None:
        """Reports after which none came any more; None while every death left one."""
        return self.reports if self.reports < self.count else None


@dataclass(frozen=True, slots=True)
class StateCost:
    """What the first state cost; footprint and ledger from the records around it."""

    stated_bytes: int | None = None  # of its buffers
    footprint_bytes: int | None = None
    neural_bytes: int | None = None  # of the neural ledgers, where the phone shows them


@dataclass(frozen=True, slots=True)
class Calibration:
    """One phone, measured."""

    key: CalibrationKey
    udid: str
    alias: str
    model: str
    os: str
    measured_s: float  # Unix seconds
    stand_in: bool  # measured by the Python stand-in app: its loads and states are no model's
    runs: tuple[str, ...] = ()  # run directories that it was read from
    limit_bytes: int | None = None
    physical_memory_bytes: int | None = None  # as the app reads it
    sysmon_memory_bytes: int | None = None  # as the developer services say
    handlers: tuple[str, ...] = ()  # channels the app registered on
    warnings: tuple[str, ...] = ()  # `origin/channel` of those that arrived
    warnings_noticed: int = 0  # by the developer services
    warned_at_percent: float | None = None  # of the limit, at the kernel's first warning
    deaths: Deaths = Deaths()
    own_kill: str | None = None  # what the host sees when we kill the app
    cold_load_ms: float | None = None
    warm_load_ms: float | None = None
    state: StateCost = StateCost()
    host_peak_bytes: int | None = None  # the highest footprint that sysmontap showed


def differs(measured_bytes: int, expected_bytes: int, tolerance: float = LIMIT_TOLERANCE) -> bool:
    """Return whether two readings of one limit are more than a page's grain apart."""
    return abs(measured_bytes - expected_bytes) > tolerance * expected_bytes


def findings(calibration: Calibration) -> list[str]:
    """Return one sentence per fact that is not as documented, or that could not be measured."""
    return [*_against_table(calibration), *_of_witnesses(calibration), *_of_deaths(calibration)]


def _against_table(found: Calibration) -> Iterator[str]:
    model = by_product_type(found.key.product_type)
    if model is None:
        yield f"{found.key.product_type} is not in the catalog: nothing to compare with"
        return
    documented_mib = model.entitled_limit_mib if found.key.entitled else model.limit_mib
    entitlement = "with" if found.key.entitled else "without"
    if found.limit_bytes is None:
        yield "the memory limit was not measured"
    elif differs(found.limit_bytes, documented_mib * MIB):
        yield (
            f"the limit {entitlement} the entitlement is {found.limit_bytes / MIB:.0f} MiB,"
            f" documented are {documented_mib} MiB"
        )
    memory_bytes = found.physical_memory_bytes
    if memory_bytes is None:
        yield "physicalMemory was not measured"
    elif differs(memory_bytes, model.physical_memory_bytes, _MEMORY_TOLERANCE):
        yield (
            f"physicalMemory is {memory_bytes:,} bytes, documented are"
            f" {model.physical_memory_bytes:,}"
        )


def _of_witnesses(found: Calibration) -> Iterator[str]:
    app, host = found.physical_memory_bytes, found.sysmon_memory_bytes
    if app is not None and host is not None and app != host:
        yield f"the app reads {app:,} bytes of memory, sysmontap {host:,}"
    heard = {channel.partition("/")[2] for channel in found.warnings}
    for channel in found.handlers:
        if channel not in heard:
            yield f"no warning arrived on the channel {channel!r}"
    if not any(channel.startswith("kernel/") for channel in found.warnings):
        yield "the kernel gave no memory warning before it killed"
    elif not found.warnings_noticed:
        yield "the developer services told of no memory warning, and the app had one of the kernel"
    if found.cold_load_ms is not None and found.warm_load_ms is None:
        yield "no load was warm: the phone compiles the model at every launch, or the engine does"


def _of_deaths(found: Calibration) -> Iterator[str]:
    deaths = found.deaths
    if not deaths.count:
        yield "the phone did not kill the app past its limit: kills and reports were not measured"
        return
    if found.own_kill is None:
        yield "what the host sees of a kill by us was not measured"
    elif found.own_kill in deaths.exits:
        yield f"a jetsam kill and a kill by us look the same to the host: {found.own_kill}"
    if deaths.quota_per_day is not None:
        yield (
            f"{deaths.reports} of {deaths.count} kills left a JetsamEvent: the phone's daily quota"
            " is used up by then, and a missing report proves nothing"
        )
