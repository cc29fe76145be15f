"""What a check is: a fold over the records of one phone that ends in one result.

A check whose trigger never happened is `unmeasured`, never `pass`; `skipped` says why it does not
apply. Every result carries its number, unit and limit, and the record that decided it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from orchestrator.domain.outcome import Result
from orchestrator.runlog.documents import CheckDocument
from orchestrator.verdict.intake import plain

if TYPE_CHECKING:
    from orchestrator.runlog.documents import (
        DeviceDocument,
        EvidenceDocument,
        PlanDocument,
        PlannedPhone,
    )
    from orchestrator.runlog.telemetry import AnyRecord, Record
    from orchestrator.verdict.cause import Diagnosis
    from orchestrator.verdict.ending import Ending
    from orchestrator.verdict.expectation import Expectation
    from orchestrator.verdict.pace import Pace
    from orchestrator.verdict.scenario import Scenario
    from orchestrator.verdict.tally import Tally

Value = float | int | str | None


@dataclass(frozen=True, slots=True)
class Limit:
    """One number that a check is held against; `checks:` of fleet.yaml overrides it by name."""

    name: str  # ends in its unit
    default: float
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class CheckInfo:
    """What a check is about, for reports."""

    id: str
    title: str
    meaning: str
    causes: tuple[str, ...]  # usual causes of a failure, likeliest first
    what_to_do: tuple[str, ...]  # in this order
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known before the first record; one per pass, shared by all checks."""

    plan: PlanDocument
    phone: PlannedPhone
    device: DeviceDocument | None
    evidence: EvidenceDocument | None
    scenario: Scenario
    expectation: Expectation
    pace: Pace
    manifest_differences: tuple[str, ...] = ()

    def threshold(self, check_id: str, name: str, default: float) -> float:
        """Return a limit of the plan, or the check's own."""
        return self.plan.thresholds.get(check_id, {}).get(name, default)


@dataclass(frozen=True, slots=True)
class Closing:
    """What is known after the last record."""

    ending: Ending
    diagnosis: Diagnosis
    tally: Tally


@dataclass(slots=True)
class Faults:
    """Failures that a check has seen: the first one, and how many there are."""

    count: int = 0
    reason: str = ""
    launch: str | None = None
    seq: int | None = None
    value: Value = None

    def add(self, record: Record, reason: str, value: Value = None) -> None:
        """Note a failure on the record that shows it."""
        self.note(reason, record.launch, record.seq, value)

    def note(
        self, reason: str, launch: str | None = None, seq: int | None = None, value: Value = None
    ) -> None:
        """Note a failure; only the first is kept."""
        if not self.count:
            self.reason, self.launch, self.seq, self.value = plain(reason), launch, seq, value
        self.count += 1

    @property
    def sentence(self) -> str:
        """The first failure, and how many more there are."""
        more = self.count - 1
        return f"{self.reason} ({more} more)" if more else self.reason


class Check(ABC):
    """One check of one phone."""

    info: ClassVar[CheckInfo]

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.faults = Faults()

    def observe(self, record: AnyRecord) -> None:  # noqa: B027 - some checks judge the end alone
        """Take the next record; the shared expectation has already taken it."""

    def observe_line(  # noqa: B027 - one check needs the bytes
        self, line: bytes, record: AnyRecord | None
    ) -> None:
        """Take the next raw line; `record` is None where it does not decode."""

    @abstractmethod
    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result."""

    def passed(
        self, value: Value, unit: str | None, limit: Value = None, remark: str | None = None
    ) -> CheckDocument:
        """Return a pass; a remark says what a reader should know besides."""
        return CheckDocument(
            id=self.info.id,
            result=Result.PASS,
            value=value,
            unit=unit,
            limit=limit,
            reason=None if remark is None else plain(remark),
        )

    def failed(self, value: Value, unit: str | None, limit: Value = None) -> CheckDocument:
        """Return a failure for the faults that were noted."""
        return CheckDocument(
            id=self.info.id,
            result=Result.FAIL,
            value=value,
            unit=unit,
            limit=limit,
            reason=self.faults.sentence,
            launch=self.faults.launch,
            seq=self.faults.seq,
        )

    def unmeasured(self, reason: str) -> CheckDocument:
        """Return that the trigger never happened or the facts are missing."""
        return CheckDocument(id=self.info.id, result=Result.UNMEASURED, reason=plain(reason))

    def skipped(self, reason: str) -> CheckDocument:
        """Return that the check does not apply."""
        return CheckDocument(id=self.info.id, result=Result.SKIPPED, reason=reason)

    def limit(self, name: str, at_least: float = 0.0) -> float:
        """Return one of the limits that the check's info lists: the plan's, else the default.

        Args:
            name: As listed.
            at_least: What the run itself makes of the default where that is more.
        """
        default = next(limit.default for limit in self.info.limits if limit.name == name)
        return self.setting.threshold(self.info.id, name, max(default, at_least))
