"""Verifies a package or a kit: weights, outputs, rows, and the power of the check itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.mlpackage.build.recipe import COMPRESSED_KEY
from orchestrator.mlpackage.build.witness import WITNESS_KEY
from orchestrator.mlpackage.package import find_packages, read_package
from orchestrator.mlpackage.verify.errors import VerifyError
from orchestrator.mlpackage.verify.measure import ERROR_LIMIT, Measured, plan_for, run_plan
from orchestrator.mlpackage.verify.mutations import Mutation, run_mutations
from orchestrator.mlpackage.verify.report import MutationResult, VerifyReport, WitnessReport
from orchestrator.mlpackage.verify.subject import Subject, load_subject
from orchestrator.mlpackage.verify.truth import PackageWeights, truth_for
from orchestrator.mlpackage.verify.weights_match import weight_findings
from orchestrator.mlpackage.verify.witness_proof import verify_witness

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.mlpackage.verify.truth import Truth


def verify(path: Path, vectors: Path | None = None) -> VerifyReport | WitnessReport:
    """Verify a package, or the packages of a folder as one model.

    Args:
        path: A package made by `fleet model build`, or a kit.
        vectors: Contexts and tokens for witness packages; drawn where it is None.

    Raises:
        PackageError: If a package cannot be read.
        VerifyError: If it does not say what it must compute, or cannot be executed.
    """
    packages = [read_package(found) for found in find_packages(path)]
    try:
        if all(WITNESS_KEY in package.model.metadata for package in packages):
            return verify_witness(packages, vectors)
        return verify_subject(load_subject(path))
    except MemoryError as error:
        raise VerifyError(f"{path}: needs more memory than there is: {error}") from error


def verify_subject(subject: Subject) -> VerifyReport:
    """Verify the packages of a decoder model."""
    compressed = any(COMPRESSED_KEY in package.model.metadata for package in subject.packages)
    compared, findings = weight_findings(subject, compressed=compressed)
    steps = plan_for(subject)
    source = (lambda: PackageWeights(subject)) if compressed else None
    truth = truth_for(subject, steps[-1].start + steps[-1].count, source)
    measured, before_last = run_plan(subject, steps, truth)
    mutations = [
        _judged(mutation, truth) for mutation in run_mutations(subject, truth, steps, before_last)
    ]
    findings += measured_findings(measured, truth)
    findings += [
        f"the mutation {mutation.name!r} was not noticed"
        for mutation in mutations
        if not mutation.noticed
    ]
    return _report(subject, measured, truth, mutations, findings, (compared, compressed))


def measured_findings(measured: Measured, truth: Truth) -> list[str]:
    """Return one line for each way in which predictions differ from the truth."""
    findings = []
    if measured.not_finite:
        findings.append(f"outputs are not finite at {measured.not_finite} positions")
    elif measured.max_error > ERROR_LIMIT * truth.spread:
        findings.append(
            f"outputs differ by {measured.max_error:.4f},"
            f" allowed are {ERROR_LIMIT * truth.spread:.4f}"
        )
    if not measured.row_error <= ERROR_LIMIT:
        findings.append(f"written rows differ by {measured.row_error:.4f} of their spread")
    if measured.stray_rows:
        findings.append(f"{measured.stray_rows} rows changed that no prediction had to write")
    if 3 * measured.top1_in_top3 < 2 * measured.positions:
        findings.append("the right token is often not among the best three")
    return findings


def _judged(mutation: Mutation, truth: Truth) -> MutationResult:
    noticed = measured_findings(mutation.measured, truth)
    return MutationResult(mutation.name, bool(noticed), "; ".join(noticed))


def _report(
    subject: Subject,
    measured: Measured,
    truth: Truth,
    mutations: list[MutationResult],
    findings: list[str],
    weights: tuple[int, bool],
) -> VerifyReport:
    count = max(1, measured.positions)
    compared, compressed = weights
    return VerifyReport(
        model=subject.recipe.name,
        packages=tuple(package.path.name for package in subject.packages),
        roles=subject.roles,
        positions=measured.positions,
        output_spread=truth.spread,
        max_error=measured.max_error,
        error_limit=ERROR_LIMIT * truth.spread,
        top1_equal=measured.top1_equal / count,
        top1_in_top3=measured.top1_in_top3 / count,
        top5_overlap=measured.top5_overlap / count,
        rows_written=measured.rows_written,
        stray_rows=measured.stray_rows,
        weights_compared=compared,
        compressed=compressed,
        mutations=tuple(mutations),
        findings=tuple(findings),
    )
