"""Which fault at which phase, and what must come of it; what makes no sense is listed as well."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from tests.chaos.injections import (
    APP_PORT,
    BATTERY,
    CLOCK,
    DEVELOPER_OFF,
    DISK_FULL,
    FARM_WIDE,
    HARMLESS,
    HUB,
    IDLE_AFC,
    IMPOSTOR,
    INSTALL_REFUSED,
    JUNK_INSTALLER,
    JUNK_REPORTS,
    LIES,
    LOCK,
    LOW_POWER,
    MUTE_REPORTS,
    NAME,
    NO_IMAGE,
    NO_PAIRING,
    OVERSIZED_INSTALLER,
    OVERSIZED_REPORTS,
    REBOOT,
    SHORT,
    SLAM_INSTALLER,
    SLAM_REPORTS,
    SLOW_AFC,
    STALL_REPORTS,
    TUNNEL,
    UNPLUG,
    UNPLUGGED,
    WIFI,
    Injection,
)

PHASES: Final = ("discover", "install", "launch", "load", "decode", "collect")
_RUNS: Final = ("load", "decode")
GOES_ON: Final = frozenset({("PASS", "completed")})


@dataclass(frozen=True, slots=True)
class Step:
    """One fault at one phase."""

    injection: Injection
    phase: str


@dataclass(frozen=True, slots=True)
class Cell:
    """What one phone has to bear, and the ends (outcome, cause) that are right."""

    steps: tuple[Step, ...]
    ends: frozenset[tuple[str, str]]

    @property
    def name(self) -> str:
        return " + ".join(f"{step.injection.name} at {step.phase}" for step in self.steps)

    @property
    def is_alone(self) -> bool:
        """Whether all phones of the farm have it, so that no other cell may share the run."""
        return any(step.injection in FARM_WIDE for step in self.steps)

    @property
    def restarts(self) -> Literal["running", "before"] | None:
        """When the phone restarts: while its app runs, or before its launch."""
        phases = [step.phase for step in self.steps if step.injection is REBOOT]
        if not phases:
            return None
        return "running" if phases[0] in _RUNS else "before"


def _one(injection: Injection, phase: str, ends: frozenset[tuple[str, str]] = GOES_ON) -> Cell:
    return Cell((Step(injection, phase),), ends)


def _lab(*causes: str) -> frozenset[tuple[str, str]]:
    return frozenset(("ERROR", cause) for cause in causes)


_BEFORE: Final = ("install", "launch")
_BROKEN: Final = _lab("device_lost", "not_ready")  # by what the broken answer reads as


def all_cells() -> list[Cell]:
    """Return every single fault at every phase where it makes sense."""
    cells = [
        _one(injection, phase) for injection in (*SHORT, *HARMLESS, HUB) for phase in PHASES[1:]
    ]
    cells += [_one(UNPLUGGED, phase, _lab("device_lost")) for phase in (*_BEFORE, *_RUNS)]
    cells += [_one(REBOOT, phase) for phase in (*_BEFORE, *_RUNS)]
    cells += [
        _one(NO_PAIRING, "install", _lab("not_ready", "device_lost")),
        _one(NO_PAIRING, "decode", GOES_ON | _lab("device_lost", "not_ready")),
        _one(DEVELOPER_OFF, "discover", _lab("not_ready")),
        _one(DEVELOPER_OFF, "install", _lab("not_ready")),
        _one(NO_IMAGE, "discover", _lab("not_ready")),
        _one(NO_IMAGE, "install", _lab("not_ready")),
        _one(INSTALL_REFUSED, "discover", _lab("install_failed")),
        _one(DISK_FULL, "discover", _lab("not_ready")),
    ]
    cells += [_one(APP_PORT, phase) for phase in ("launch", *_RUNS)]
    return cells + _service_cells()


def _service_cells() -> list[Cell]:
    """Return the faults of single services, each where that service is used."""
    return [
        *(_one(broken, "discover", _BROKEN) for broken in (SLAM_INSTALLER, JUNK_INSTALLER)),
        _one(OVERSIZED_INSTALLER, "discover", _BROKEN),
        *(_one(slow, phase) for slow in (SLOW_AFC, IDLE_AFC) for phase in ("discover", "decode")),
        *(_one(NAME, phase) for phase in ("discover", "decode")),
        *(_one(LIES, phase) for phase in ("discover", "decode", "collect")),
        # Nobody died: reports that cannot be had are a remark.
        *(
            _one(broken, "decode")
            for broken in (SLAM_REPORTS, JUNK_REPORTS, OVERSIZED_REPORTS, STALL_REPORTS)
        ),
        _one(MUTE_REPORTS, "collect"),
        _one(LOCK, "install", _lab("device_locked", "not_ready") | GOES_ON),
        _one(LOCK, "decode", GOES_ON | _lab("foreground_lost", "device_locked")),
        _one(IMPOSTOR, "decode"),
    ]


# (faults, phases, why there is no cell)
LEFT_OUT: Final = (
    ("cable out, hub lost, reboot", "discover", "a phone that is not there is not in the run"),
    ("cable out for good, reboot", "collect", "the app is over; what is lost then is a race"),
    ("Developer Mode off, image unmounted", "launch and later", "sessions that are open go on"),
    ("install refused, disk full", "launch and later", "nothing is written to the phone then"),
    ("app's port refuses, impostor", "discover, install, collect", "no app listens then"),
    ("faults of the installer", "launch and later", "it is not asked any more"),
    ("faults of crash reports", "install to load", "they are read before, and after the end"),
    ("stall of AFC or the installer", "install", "the step's own limit of 300 s: tests/device"),
    ("kills, crashes, watchdog, heat, memory", "all", "the product's: `fleet selftest`"),
    ("corrupt, late, missing reports", "all", "nothing dies here: tests/evidence"),
)

# Two at once, drawn by a seed from these; each at a phase of its own.
_PAIRED: Final = (
    *((injection, PHASES[1:]) for injection in (UNPLUG, TUNNEL, CLOCK, WIFI, LOW_POWER, BATTERY)),
    *((injection, ("launch", *_RUNS)) for injection in (APP_PORT,)),
    *((injection, ("discover", "decode")) for injection in (SLOW_AFC, NAME, LIES)),
)
_ENDING: Final = ((UNPLUGGED, _RUNS), (INSTALL_REFUSED, ("discover",)), (DISK_FULL, ("discover",)))

LEFT_OUT_PAIRS: Final = (
    ("the same fault twice", "the second is the first, longer"),
    ("cable out for good, and any that needs the cable after it", "nothing reaches the phone"),
    ("reboot and another interruption", "one lab error is tried again, the second is not"),
    ("two that both end the session", "the first decides"),
    ("usbmuxd or hub, and another", "the whole farm has them: single cells"),
)


def pairs(seed: int, count: int) -> list[Cell]:
    """Return two faults at once, drawn by a seed: each pair of names once at most."""
    chance = random.Random(seed)
    found: dict[frozenset[str], Cell] = {}
    while len(found) < count:
        first, second = chance.sample(_PAIRED, 2)
        if chance.random() < 0.25:
            second = chance.choice(_ENDING)
        steps = tuple(
            sorted(
                (Step(injection, chance.choice(phases)) for injection, phases in (first, second)),
                key=lambda step: PHASES.index(step.phase),
            )
        )
        ends = _lab("device_lost") if second[0] is UNPLUGGED else GOES_ON
        if second[0] is INSTALL_REFUSED:
            ends = _lab("install_failed")
        elif second[0] is DISK_FULL:
            ends = _lab("not_ready")
        elif second[0] is UNPLUGGED and first[0] is UNPLUG:
            continue
        found.setdefault(frozenset((first[0].name, second[0].name)), Cell(steps, ends))
    return list(found.values())


MOST_VICTIMS: Final = 5  # of one run; with a healthy phone beside them


@dataclass(frozen=True, slots=True)
class Group:
    """Cells that share one run: each has a phone of its own."""

    cells: tuple[Cell, ...]
    number: int = field(default=0)

    @property
    def name(self) -> str:
        return f"{self.number:02d}: " + ", ".join(cell.name for cell in self.cells)


def grouped(cells: list[Cell]) -> list[Group]:
    """Return all cells in as few runs as may be."""
    alone = [(cell,) for cell in cells if cell.is_alone]
    shared = [cell for cell in cells if not cell.is_alone]
    runs = [
        tuple(shared[start : start + MOST_VICTIMS]) for start in range(0, len(shared), MOST_VICTIMS)
    ]
    return [Group(run, number) for number, run in enumerate([*runs, *alone], start=1)]


def drawn(seed: int, count: int) -> list[Cell]:
    """Return some cells, drawn by a seed, and a pair; all where there are fewer."""
    cells = all_cells()
    if count >= len(cells):
        return [*cells, *pairs(seed, 15)]
    return [*random.Random(seed).sample(cells, count), *pairs(seed, 1)]


def settings_of(injection: Injection) -> dict[str, Any]:
    """Return what the farm is told."""
    return {"kind": injection.kind, "settings": injection.settings, "for_s": injection.for_s}
