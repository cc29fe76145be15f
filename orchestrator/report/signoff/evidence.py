"""What a run directory offers as evidence: its phones judged afresh, and whether it is intact."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.domain.errors import RunDirectoryError, UsageError
from orchestrator.domain.iphone import why_unlisted
from orchestrator.report.remake import judge_run
from orchestrator.runlog.documents import CheckDocument, SummaryDocument
from orchestrator.runlog.files import read_document
from orchestrator.runlog.layout import RunPaths
from orchestrator.runlog.manifest import differing_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.report.result import PhoneResult, RunResult


@dataclass(frozen=True, slots=True)
class PhoneEvidence:
    """One phone of one run."""

    run_id: str
    alias: str
    udid: str
    model: str
    os: str
    virtual: bool
    stand_in: bool
    unlisted: str | None  # why it is outside what a release covers
    outcome: str
    cause: str
    explanation: str
    inference_s: float
    checks: tuple[CheckDocument, ...]

    @property
    def who(self) -> str:
        """The phone and its run, for a sentence."""
        return f"{self.alias} ({self.model}, iOS {self.os}) in {self.run_id}"

    def check(self, check_id: str) -> CheckDocument | None:
        """Return what a check said, None where this run did not have it."""
        return next((check for check in self.checks if check.id == check_id), None)


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """One run."""

    run_id: str
    root: Path
    app_name: str
    app_sha256: str
    manifest_sha256: str
    started_s: float
    phones: tuple[PhoneEvidence, ...]
    tampered: tuple[str, ...]  # files that are not what the run sealed
    sealed: bool  # False: killed before its manifest was written
    swapped: str | None  # how the stored report contradicts the evidence


def read_all(roots: Sequence[Path]) -> list[RunEvidence]:
    """Return the evidence of several runs.

    Raises:
        RunDirectoryError: If one is no run directory, or has no plan.
        UsageError: If a run is named twice.
    """
    runs = [read_evidence(root) for root in roots]
    if len({run.run_id for run in runs}) != len(runs):
        raise UsageError("a run is named twice")
    return runs


def read_evidence(root: Path) -> RunEvidence:
    """Judge a run again and look whether its evidence is what the run sealed.

    Raises:
        RunDirectoryError: If this is no run directory, or it has no plan.
    """
    result = judge_run(root)
    if result.plan is None:
        raise RunDirectoryError(f"{root} has no plan: it was killed before it began")
    differences = differing_files(root)
    manifest = RunPaths(root).manifest
    return RunEvidence(
        run_id=result.run.run_id,
        root=root,
        app_name=result.plan.app.name,
        app_sha256=result.plan.app.package_sha256,
        manifest_sha256=hashlib.sha256(manifest.read_bytes()).hexdigest()
        if manifest.exists()
        else "",
        started_s=result.run.started_s,
        phones=tuple(_phone(result.run.run_id, phone) for phone in result.phones),
        tampered=tuple(differences or ()),
        sealed=differences is not None and result.run.ended_s is not None,
        swapped=_swapped(root, result),
    )


def _phone(run_id: str, phone: PhoneResult) -> PhoneEvidence:
    verdict = phone.verdict
    return PhoneEvidence(
        run_id=run_id,
        alias=verdict.alias,
        udid=verdict.udid,
        model=verdict.model,
        os=verdict.os,
        virtual=verdict.virtual,
        stand_in=verdict.stand_in,
        unlisted=why_unlisted(verdict.product_type, verdict.os),
        outcome=verdict.outcome,
        cause=verdict.cause,
        explanation=verdict.explanation,
        inference_s=verdict.inference_s,
        checks=tuple(verdict.checks),
    )


def _swapped(root: Path, result: RunResult) -> str | None:
    """Return how the stored summary contradicts the evidence, None where it does not."""
    path = RunPaths(root).summary_json
    if not path.exists():
        return None
    try:
        stored = read_document(path, SummaryDocument)
    except RunDirectoryError as error:
        return str(error)
    if stored.run_id != result.run.run_id:
        return f"summary.json is of run {stored.run_id}"
    said = {phone.udid: phone.outcome for phone in stored.phones}
    for phone in result.summary.phones:
        if said.pop(phone.udid, None) != phone.outcome:
            return f"the evidence says {phone.outcome} of {phone.alias}, summary.json does not"
    if said:
        return f"summary.json tells of {len(said)} phones that the evidence does not have"
    return None
