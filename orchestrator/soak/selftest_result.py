"""The result of a self-test, as `fleet selftest --json` prints it: pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.domain.defects import DEFECTS
from orchestrator.soak.cells import SWEEPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.soak.cells import Finding, Sweep

SWEEP_RATIO: Final = 0.95


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
        sweep=None if sweep is None else _swept_of(sweep),
    )


def _swept_of(findings: Sequence[Finding]) -> list[SweepResult]:
    met = {finding.cell.defect.name for finding in findings if finding.cell.defect is not None}
    return [_swept(sweep, findings) for sweep in SWEEPS if sweep.defect in met]


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
