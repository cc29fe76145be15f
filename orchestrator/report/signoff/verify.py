"""Checks a sign-off bundle offline: every byte of it, and whose signature it bears."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.report.signoff.listing import MANIFEST, POLICY, STATEMENT, differences, sha256_of
from orchestrator.report.signoff.statement import StatementError, open_envelope

if TYPE_CHECKING:
    from pathlib import Path

    from securesystemslib.signer import SSlibKey


@dataclass(frozen=True, slots=True)
class Verification:
    """What a bundle is."""

    result: str | None  # "PASSED", "WARNED"; None where the statement cannot be trusted
    app: str | None  # what was signed off, with its release
    problems: tuple[str, ...]  # empty: not a byte differs

    @property
    def holds(self) -> bool:
        """Whether the bundle is what was signed."""
        return not self.problems


def verify_bundle(root: Path, key: SSlibKey) -> Verification:
    """Check a bundle against a public key that the reader trusts; nothing is fetched."""
    for name in (STATEMENT, MANIFEST):
        if not (root / name).is_file() or (root / name).is_symlink():
            return Verification(None, None, (f"missing: {name}",))
    try:
        statement = open_envelope((root / STATEMENT).read_bytes(), key)
    except StatementError as error:
        return Verification(None, None, (f"changed: {STATEMENT} {error}",))
    return _of_files(root, statement)


def _of_files(root: Path, statement: dict[str, object]) -> Verification:
    subjects = _digests(statement.get("subject"))
    predicate = statement.get("predicate")
    facts = predicate if isinstance(predicate, dict) else {}
    result = facts.get("result")
    app = next((name for name in subjects if name != MANIFEST), None)
    manifest = (root / MANIFEST).read_bytes()
    problems = differences(root, manifest)
    if subjects.get(MANIFEST) != hashlib.sha256(manifest).hexdigest():
        # Its list cannot be believed, but what it disagrees with is still worth naming.
        problems = [f"changed: {MANIFEST}", *problems]
    policy = _digests(facts.get("configuration")).get(POLICY)
    if (root / POLICY).is_file() and sha256_of(root / POLICY) != policy:
        problems.append(f"changed: {POLICY}")
    return Verification(
        result if isinstance(result, str) else None, app, tuple(dict.fromkeys(problems))
    )


def _digests(descriptors: object) -> dict[str, str]:
    """Return the SHA-256 of each named resource; what is no descriptor is left out."""
    found: dict[str, str] = {}
    for entry in descriptors if isinstance(descriptors, list) else []:
        match entry:
            case {"name": str(name), "digest": {"sha256": str(digest)}}:
                found[name] = digest
            case _:
                continue
    return found
