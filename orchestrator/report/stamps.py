"""Environment stamps: what a reader must know before comparing a phone's numbers with others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.report.wording import mebibytes, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.runlog.documents import (
        DeviceDocument,
        HealthDocument,
        PlanDocument,
        PlannedPhone,
    )
    from orchestrator.runlog.telemetry import Load
    from orchestrator.verdict.environment import Environment

UNKNOWN: Final = "not said"
_DIGEST_DIGITS: Final = 12
_LONGEST: Final = 120


@dataclass(frozen=True, slots=True)
class PhoneStamps:
    """What one phone ran, and in what state; texts may be the phone's."""

    os_build: str
    model_digest: str  # first 12 digits
    app_build: str
    app_sha256: str  # of the package that was installed
    app_commit: str
    others: tuple[tuple[str, str], ...]  # label and value, in the order to show

    @property
    def shown(self) -> tuple[tuple[str, str], ...]:
        """Label and value of all stamps."""
        return (
            ("iOS build", self.os_build),
            ("Harness commit", self.app_commit),
            ("Harness build", self.app_build),
            ("App package", f"sha256 {self.app_sha256[:_DIGEST_DIGITS]}"),
            ("Model digest", self.model_digest),
            *self.others,
        )


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where the stamps come from; what is None was never learnt."""

    plan: PlanDocument
    planned: PlannedPhone
    device: DeviceDocument | None
    health: HealthDocument | None  # of the attempt that is judged
    environment: Environment


def stamps_of(around: Surroundings) -> PhoneStamps:
    """Return the stamps of one phone."""
    hello, load = around.environment.hello, around.environment.load
    device: DeviceDocument | PlannedPhone = around.device or around.planned
    return PhoneStamps(
        os_build=_short(device.build),
        model_digest=load.digest[:_DIGEST_DIGITS] if load else UNKNOWN,
        app_build=_short(hello.build) if hello else UNKNOWN,
        app_sha256=around.plan.app.package_sha256,
        app_commit=around.plan.app.commit or UNKNOWN,
        others=tuple((label, _short(text)) for label, text in _others(around)),
    )


def _others(around: Surroundings) -> Iterator[tuple[str, str]]:
    hello, load = around.environment.hello, around.environment.load
    first = around.environment.first_sample
    if around.planned.host is not None:
        yield "Host", around.planned.host
    yield "Harness app", f"{hello.app} {hello.app_version}" if hello else UNKNOWN
    yield "Thermal state at the start", first.thermal if first else UNKNOWN
    yield "Charger", _charger(around)
    yield "Battery", _battery(around)
    yield "Low power mode", _yes_no(first.low_power if first else None)
    yield "Raised memory limit", _yes_no(hello.entitled if hello else None)
    yield "Memory", _memory(around)
    yield "Weights", _weights(load, hello.quantization if hello else UNKNOWN)
    yield "Compute units", load.compute_units if load else UNKNOWN
    yield "Placement", _placement(load)
    yield "Engine", hello.engine if hello else UNKNOWN
    yield "Scenario", f"{around.plan.scenario.get('name', UNKNOWN)}, seed {around.plan.seed}"


def _charger(around: Surroundings) -> str:
    first, health = around.environment.first_sample, around.health
    told = first.charging if first else None
    if told is None and health is not None:
        told = health.charging
    return UNKNOWN if told is None else "connected" if told else "not connected"


def _battery(around: Surroundings) -> str:
    first, last = around.environment.first_sample, around.environment.last_sample
    if first is not None and last is not None and first.battery_percent is not None:
        end = last.battery_percent
        return f"{first.battery_percent:.0f} %" + ("" if end is None else f" to {end:.0f} %")
    if around.health is not None and around.health.battery_percent is not None:
        return f"{around.health.battery_percent} % before the start"
    return UNKNOWN


def _memory(around: Surroundings) -> str:
    size_bytes = around.device.physical_memory_bytes if around.device else None
    size = UNKNOWN if size_bytes is None else mebibytes(size_bytes)
    return f"{size}, class {around.planned.expected.memory_class}"


def _weights(load: Load | None, quantization: str) -> str:
    if load is None:
        return quantization
    return f"{quantization}, {load.bits_per_weight:g} bits each, {mebibytes(load.weights_bytes)}"


def _placement(load: Load | None) -> str:
    """Return how many operations of the compute plan each device takes."""
    counts: Counter[str] = Counter()
    for row in load.plan if load else []:
        device, ops = row.get("device"), row.get("ops")
        if isinstance(device, str) and isinstance(ops, int):
            counts[device.replace("_", " ")] += ops
    if not counts:
        return "no compute plan"
    return ", ".join(f"{device} {ops}" for device, ops in counts.most_common(4))


def _yes_no(value: bool | None) -> str:
    if value is None:
        return UNKNOWN
    return "yes" if value else "no"


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
