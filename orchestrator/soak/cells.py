"""What a self-test runs and what it found: pure."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.domain.defects import DEFECT_BY_NAME, DEFECTS
from orchestrator.domain.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from orchestrator.domain.defects import Defect


@dataclass(frozen=True, slots=True)
class Cell:
    """One session of a self-test."""

    seed: int
    defect: Defect | None = None  # None for a clean session
    parameter: int | None = None

    @property
    def launched_as(self) -> str | None:
        """What the app is launched with."""
        if self.defect is None:
            return None
        return self.defect.name + ("" if self.parameter is None else f":{self.parameter}")


@dataclass(frozen=True, slots=True)
class Finding:
    """What the checks said of one session."""

    cell: Cell
    run: Path
    outcome: Outcome
    failed: tuple[str, ...]  # ids of checks
    explanation: str

    @property
    def caught(self) -> bool:
        """Whether the defect's own check failed."""
        return self.cell.defect is not None and self.cell.defect.check in self.failed

    @property
    def is_false_alarm(self) -> bool:
        """Whether a clean session did not pass."""
        return self.cell.defect is None and self.outcome is not Outcome.PASS


def cells_of(defects: Iterable[Defect], clean_sessions: int, seed: int) -> list[Cell]:
    """Return a session for each defect, its parameter drawn by the seed, and the clean ones."""
    cells = [Cell(_seed(seed, defect.name), defect, _draw(defect, seed)) for defect in defects]
    return cells + [Cell(_seed(seed, f"clean {number}")) for number in range(clean_sessions)]


def _draw(defect: Defect, seed: int) -> int | None:
    if not defect.draws:
        return None
    return random.Random(f"{seed}:{defect.name}").choice(defect.draws)  # noqa: S311 - no secret


def _seed(seed: int, name: str) -> int:
    return random.Random(f"{seed}:{name}:prompts").getrandbits(63)  # noqa: S311 - no secret


def selected(names: Sequence[str]) -> tuple[Defect, ...]:
    """Return the defects of a list of names, all of them for an empty one, in the table's order.

    Raises:
        KeyError: For a name that is in no table.
    """
    known = {defect.name for defect in DEFECTS}
    for name in names:
        if name not in known:
            raise KeyError(name)
    return tuple(defect for defect in DEFECTS if not names or defect.name in names)


@dataclass(frozen=True, slots=True)
class Sweep:
    """Severities of one defect, to find the smallest that is caught."""

    defect: str
    unit: str
    severities: tuple[int, ...]  # rising


SWEEPS: Final = (
    Sweep("leak", "KiB per token", (8, 12, 16, 24, 32, 64)),
    Sweep("slow-decay", "% slower after each 1000 tokens", (2, 4, 6, 8, 10, 15, 20)),
    Sweep("trim-late", "tokens late", (1, 2, 7)),
)
SWEEP_SESSIONS: Final = 20  # for each severity: 19 of them are 95 %
SWEEP_RATIO: Final = 0.95


def sweep_cells(seed: int) -> list[Cell]:
    """Return the sessions of all sweeps."""
    return [
        Cell(_seed(seed, f"{sweep.defect}:{severity}:{number}"), defect, severity)
        for sweep in SWEEPS
        for defect in (DEFECT_BY_NAME[sweep.defect],)
        for severity in sweep.severities
        for number in range(SWEEP_SESSIONS)
    ]


class DefectResult(msgspec.Struct, frozen=True):
    """One defect in the result of a self-test; the keys are relied on from outside."""

    name: str
    expected: list[str]  # ids of checks
    failed: list[str]
    caught: bool


class CleanResult(msgspec.Struct, frozen=True):
    """The clean sessions in the result of a self-test; the keys are relied on from outside."""

    runs: int  # clean phone sessions
    false_alarms: int


class SweepPoint(msgspec.Struct, frozen=True):
    """How often one severity was caught."""

    severity: int
    runs: int
    caught: int


class SweepResult(msgspec.Struct, frozen=True):
    """The sweep of one defect."""

    name: str
    unit: str
    smallest: int | None  # caught, like every larger one, in at least 95 % of runs
    points: list[SweepPoint]


class SelfTestResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What `fleet selftest --json` prints; the keys are relied on from outside."""

    defects: list[DefectResult]
    clean: CleanResult
    sweep: list[SweepResult] | None = None  # with `--sweep`

    @property
    def is_good(self) -> bool:
        """Whether every defect was caught by its own check and no clean session raised one."""
        return self.clean.false_alarms == 0 and all(defect.caught for defect in self.defects)


def result_of(findings: Sequence[Finding], sweep: Sequence[Finding] | None) -> SelfTestResult:
    """Return the result of a self-test, defects in the table's order."""
    by_name = {
        finding.cell.defect.name: finding for finding in findings if finding.cell.defect is not None
    }
    clean = [finding for finding in findings if finding.cell.defect is None]
    return SelfTestResult(
        defects=[
            DefectResult(
                name=defect.name,
                expected=[defect.check],
                failed=list(by_name[defect.name].failed),
                caught=by_name[defect.name].caught,
            )
            for defect in DEFECTS
            if defect.name in by_name
        ],
        clean=CleanResult(len(clean), sum(finding.is_false_alarm for finding in clean)),
        sweep=None if sweep is None else [_swept(each, sweep) for each in SWEEPS],
    )


def _swept(sweep: Sweep, findings: Sequence[Finding]) -> SweepResult:
    own = [
        finding
        for finding in findings
        if finding.cell.defect is not None and finding.cell.defect.name == sweep.defect
    ]
    runs = Counter(finding.cell.parameter for finding in own)
    caught = Counter(finding.cell.parameter for finding in own if finding.caught)
    points = [SweepPoint(each, runs[each], caught[each]) for each in sweep.severities]
    smallest = None
    for point in reversed(points):
        if not point.runs or point.caught < SWEEP_RATIO * point.runs:
            break
        smallest = point.severity
    return SweepResult(sweep.defect, sweep.unit, smallest, points)
