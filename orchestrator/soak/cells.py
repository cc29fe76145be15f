"""What a self-test runs, and what it found in one session: pure."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

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


def sweep_cells(defects: Iterable[Defect], seed: int) -> list[Cell]:
    """Return the sessions of the sweeps of some defects; most defects have none."""
    wanted = {defect.name for defect in defects}
    return [
        Cell(_seed(seed, f"{sweep.defect}:{severity}:{number}"), defect, severity)
        for sweep in SWEEPS
        if sweep.defect in wanted
        for defect in (DEFECT_BY_NAME[sweep.defect],)
        for severity in sweep.severities
        for number in range(SWEEP_SESSIONS)
    ]
