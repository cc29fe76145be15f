"""Which fault at which phase, and what must come of it; what makes no sense is listed as well."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Final

PHASES: Final = ("discover", "install", "launch", "load", "decode", "collect")
LAB: Final = frozenset({"device_lost", "telemetry_lost", "not_ready", "install_failed"})
GOES_ON: Final = frozenset({("PASS", "completed")})


@dataclass(frozen=True, slots=True)
class Injection:
    """A fault with its settings, and how long it lasts."""

    name: str
    kind: str
    settings: dict[str, Any] = field(default_factory=dict)
    for_s: float | None = None  # None: to the end of the run


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault at one phase, and the ends (outcome, cause) that are right."""

    injection: Injection
    phase: str
    ends: frozenset[tuple[str, str]]

    @property
    def name(self) -> str:
        return f"{self.injection.name} at {self.phase}"


def _lab(*causes: str) -> frozenset[tuple[str, str]]:
    return frozenset(("ERROR", cause) for cause in causes)


_RUNS: Final = ("load", "decode")
_BEFORE: Final = ("install", "launch")

_SHORT: Final = (
    Injection("unplug 3 s", "unplug", for_s=3.0),
    Injection("usbmuxd restarts within 2 s", "usbmux_restart", for_s=2.0),
    Injection("usbmuxd hangs 3 s", "usbmux_hang", for_s=3.0),
    Injection("tunnel moves", "tunnel_moved"),
)
_HARMLESS: Final = (
    Injection("clock one hour ahead", "clock_skew", {"seconds": 3600}),
    Injection("listed over Wi-Fi too", "wifi_duplicate"),
    Injection("Low Power Mode", "low_power"),
    Injection("battery drains", "battery_drain", {"percent_per_min": 1.0}),
)
_UNPLUGGED: Final = Injection("unplug for good", "unplug")
_REBOOT: Final = Injection("reboot", "reboot")
_NO_PAIRING: Final = Injection("pairing lost", "pairing_lost")
_DEVELOPER_OFF: Final = Injection("Developer Mode off", "developer_mode_off")
_NO_IMAGE: Final = Injection("developer image unmounted", "ddi_unmounted")
_BAD_SIGNATURE: Final = Injection("install refused", "install_error", {"reason": "signature"})
_DISK_FULL: Final = Injection("disk full", "disk_full")
_MUTE_LOCKDOWN_AFC: Final = Injection(
    "crash reports mute 5 s", "mute", {"service": "com.apple.crashreportcopymobile"}, for_s=5.0
)
_DEAF: Final = Injection("app port refuses 3 s", "telemetry_refused", for_s=3.0)


def all_cells() -> list[Cell]:
    """Return every combination that makes sense."""
    cells = [
        Cell(injection, phase, GOES_ON)
        for injection in (*_SHORT, *_HARMLESS)
        for phase in PHASES[1:]
    ]
    cells += [Cell(_UNPLUGGED, phase, _lab("device_lost")) for phase in (*_BEFORE, *_RUNS)]
    cells += [Cell(_REBOOT, phase, GOES_ON) for phase in (*_BEFORE, *_RUNS)]
    cells += [
        Cell(_NO_PAIRING, "install", _lab("not_ready", "device_lost")),
        Cell(_NO_PAIRING, "decode", GOES_ON | _lab("device_lost", "not_ready")),
        Cell(_DEVELOPER_OFF, "discover", _lab("not_ready")),
        Cell(_DEVELOPER_OFF, "install", _lab("not_ready")),
        Cell(_NO_IMAGE, "discover", _lab("not_ready")),
        Cell(_NO_IMAGE, "install", _lab("not_ready")),
        Cell(_BAD_SIGNATURE, "discover", _lab("install_failed")),
        Cell(_DISK_FULL, "discover", _lab("not_ready")),
        Cell(_MUTE_LOCKDOWN_AFC, "collect", GOES_ON),
    ]
    cells += [Cell(_DEAF, phase, GOES_ON) for phase in ("launch", *_RUNS)]
    return cells


# (faults, phases, why there is no cell)
LEFT_OUT: Final = (
    ("unplug, unplug for good, reboot", "discover", "a phone that is not there is not in the run"),
    ("unplug for good, reboot", "collect", "the app is over; what is lost then is a race"),
    ("Developer Mode off, developer image unmounted", "launch and later", "open sessions go on"),
    ("install refused, disk full", "launch and later", "nothing is written to the phone then"),
    ("app port refuses", "discover, install, collect", "no app listens then"),
    ("jetsam, crash, watchdog, heat, thermal kill, memory", "all", "the product's: `selftest`"),
    ("lock", "all", "held at the gate for gate.unlock_limit_s, tests/soak/test_gatekeeper.py"),
    ("slam, stall, slow, idle drop, junk, oversized", "all", "per service: tests/device"),
    ("corrupt and late reports", "all", "nothing dies here: tests/evidence"),
)


def drawn(seed: int, count: int) -> list[Cell]:
    """Return some cells, drawn by a seed; all of them where there are fewer."""
    cells = all_cells()
    return cells if count >= len(cells) else random.Random(seed).sample(cells, count)
