"""Conditions that a phone's kernel tells an app, and their form on the app's stdin.

Source: docs/protocol.md, section 1.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import ClassVar, TypeAlias


class ThermalLevel(StrEnum):
    """`ProcessInfo.ThermalState`."""

    NOMINAL = "nominal"
    FAIR = "fair"
    SERIOUS = "serious"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class MemoryWarning:
    """The app should free memory now."""

    event: ClassVar = "memory_warning"


@dataclass(frozen=True, slots=True)
class ThermalChange:
    """The phone's thermal state changed."""

    event: ClassVar = "thermal"
    state: ThermalLevel


@dataclass(frozen=True, slots=True)
class BatteryChange:
    """Charge, or whether the phone is charging, changed."""

    event: ClassVar = "battery"
    level_percent: int
    charging: bool


@dataclass(frozen=True, slots=True)
class ForegroundChange:
    """The app came to the foreground or left it."""

    event: ClassVar = "foreground"
    value: bool


@dataclass(frozen=True, slots=True)
class LowPowerChange:
    """Low Power Mode was switched."""

    event: ClassVar = "low_power"
    value: bool


Condition: TypeAlias = (
    MemoryWarning | ThermalChange | BatteryChange | ForegroundChange | LowPowerChange
)


def condition_line(number: int, condition: Condition) -> bytes:
    """Return one line of the conditions channel, newline included.

    Args:
        number: Ordinal of the condition in the launch, from 1: an app sees when one is missing.
        condition: What to tell.
    """
    document = {"n": number, "event": condition.event, **asdict(condition)}
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"
