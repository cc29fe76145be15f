"""Makes a sign-off bundle: evidence copied, judged where it lies, listed, signed, then named.

The folder gets its name last, so a bundle that exists is whole. What was judged and what is
signed are the same bytes: the copy's manifests are compared with those that were judged.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.domain.errors import RunDirectoryError, UsageError
from orchestrator.report.remake import remake
from orchestrator.report.signoff.document import (
    SealedRun,
    SignoffFacts,
    html_document,
    machine_facts,
    pdf_document,
)
from orchestrator.report.signoff.listing import (
    DOCUMENT,
    DOCUMENT_PDF,
    EVIDENCE,
    FACTS,
    MANIFEST,
    POLICY,
    STATEMENT,
    manifest_bytes,
    paths_below,
)
from orchestrator.report.signoff.statement import Resource, sign, statement_of
from orchestrator.runlog.files import replace_file
from orchestrator.runlog.layout import RunPaths, safe_name
from orchestrator.runlog.manifest import differing_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from securesystemslib.signer import CryptoSigner

    from orchestrator.report.signoff.decision import Decision
    from orchestrator.report.signoff.evidence import RunEvidence
    from orchestrator.report.signoff.policy import Policy


@dataclass(frozen=True, slots=True)
class Order:
    """What a bundle is made of; the decision passes."""

    release: str
    policy: Policy
    runs: Sequence[RunEvidence]
    decision: Decision
    at_s: float
    with_pdf: bool


def write_bundle(target: Path, order: Order, signer: CryptoSigner) -> None:
    """Write a signed bundle.

    Raises:
        UsageError: If the target exists, or a PDF is wanted and cannot be made.
        RunDirectoryError: If evidence changed while it was copied.
    """
    if target.exists():
        raise UsageError(f"{target} exists already", remedy="A sign-off is never overwritten")
    staging = target.with_name(f".{target.name}.making")
    shutil.rmtree(staging, ignore_errors=True)
    try:
        _fill(staging, order, signer)
        staging.rename(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _fill(staging: Path, order: Order, signer: CryptoSigner) -> None:
    sealed = [_seal(run, staging / EVIDENCE / safe_name(run.run_id)) for run in order.runs]
    policy = Resource(POLICY, hashlib.sha256(order.policy.text).hexdigest())
    facts = SignoffFacts(
        release=order.release,
        at_s=order.at_s,
        policy=order.policy.release,
        policy_sha256=policy.sha256,
        decision=order.decision,
        runs=sealed,
        key_id=signer.public_key.keyid,
    )
    html = html_document(facts)
    files = {
        POLICY: order.policy.text,
        FACTS: json.dumps(machine_facts(facts), indent=2).encode() + b"\n",
        DOCUMENT: html.encode(),
    }
    if order.with_pdf:
        files[DOCUMENT_PDF] = pdf_document(html)
    for name, content in files.items():
        replace_file(staging / name, content)
    manifest = manifest_bytes(staging)
    replace_file(staging / MANIFEST, manifest)
    subjects = _subjects(order, manifest, files)
    statement = statement_of(subjects, policy, order.decision.cells)
    replace_file(staging / STATEMENT, sign(statement, signer))


def _seal(run: RunEvidence, copy: Path) -> SealedRun:
    """Copy a run and make its report again from the copy."""
    shutil.copytree(run.root, copy, symlinks=True, ignore=_links)
    manifest = RunPaths(copy).manifest.read_bytes()
    if hashlib.sha256(manifest).hexdigest() != run.manifest_sha256 or differing_files(copy):
        raise RunDirectoryError(f"{run.root} changed while it was copied")
    remake(copy)
    sizes = [(copy / name).lstat().st_size for name in paths_below(copy)]
    return SealedRun(run, len(sizes), sum(sizes))


def _links(folder: str, names: list[str]) -> set[str]:
    """Return the links of a folder: they are no evidence, and lead out of the bundle."""
    return {name for name in names if os.path.islink(os.path.join(folder, name))}


def _subjects(order: Order, manifest: bytes, files: dict[str, bytes]) -> list[Resource]:
    """Return what the statement is about: the app, and the bundle that says so."""
    app = order.runs[0]
    shown = [name for name in (DOCUMENT, DOCUMENT_PDF) if name in files]
    return [
        Resource(f"{app.app_name} {order.release}", app.app_sha256),
        Resource(MANIFEST, hashlib.sha256(manifest).hexdigest()),
        *(Resource(name, hashlib.sha256(files[name]).hexdigest()) for name in shown),
    ]
