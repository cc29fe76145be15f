"""The signed statement: in-toto Statement v1 with the test-result predicate in a DSSE envelope.

Sources: in-toto/attestation, spec/v1/statement.md and spec/predicates/test-result.md (v0.1);
secure-systems-lab/dsse, envelope.md. The statement is plain JSON; envelope and signature are
securesystemslib's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import Error as SigningError

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner, SSlibKey

    from orchestrator.report.signoff.decision import Cell

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "https://in-toto.io/attestation/test-result/v0.1"


class StatementError(Exception):
    """An envelope is damaged, altered, or signed by somebody else; `str()` says which."""


@dataclass(frozen=True, slots=True)
class Resource:
    """Something a statement names by its digest."""

    name: str
    sha256: str

    def descriptor(self) -> dict[str, object]:
        """Return in-toto's ResourceDescriptor."""
        return {"name": self.name, "digest": {"sha256": self.sha256}}


def statement_of(
    subjects: list[Resource], policy: Resource, cells: tuple[Cell, ...]
) -> dict[str, object]:
    """Return the statement of a release that passes."""
    passed = [name for cell in cells for name in _tests(cell, cell.passed)]
    warned = [name for cell in cells for name in _tests(cell, cell.waived)]
    return {
        "_type": STATEMENT_TYPE,
        "subject": [subject.descriptor() for subject in subjects],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "result": "WARNED" if warned else "PASSED",
            "configuration": [policy.descriptor()],
            "passedTests": passed,
            "warnedTests": warned,
            "failedTests": [],
        },
    }


def _tests(cell: Cell, check_ids: tuple[str, ...]) -> list[str]:
    need = cell.requirement
    return [f"{need.model} / iOS {need.os} / {need.min_hours:g} h / {each}" for each in check_ids]


def sign(statement: dict[str, object], signer: CryptoSigner) -> bytes:
    """Return the envelope's bytes."""
    payload = json.dumps(statement, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    envelope = Envelope(payload.encode(), PAYLOAD_TYPE, {})
    envelope.sign(signer)
    return _encoded(envelope)


def open_envelope(content: bytes, key: SSlibKey) -> dict[str, object]:
    """Return the statement inside an envelope that `key` signed.

    Raises:
        StatementError: For anything else than the very bytes that were signed with that key.
    """
    try:
        envelope = Envelope.from_dict(json.loads(content))
        unaltered = _encoded(envelope) == content
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, SigningError) as error:
        raise StatementError("is truncated or no DSSE envelope") from error
    if envelope.payload_type != PAYLOAD_TYPE:
        raise StatementError("holds no in-toto statement")
    try:
        envelope.verify([key], threshold=1)
    except (ValueError, SigningError) as error:
        raise StatementError("is not signed by this key, or was changed") from error
    if not unaltered:
        raise StatementError("was changed outside the signed part")
    return _statement(envelope.payload)


def _statement(payload: bytes) -> dict[str, object]:
    statement = json.loads(payload)
    if not isinstance(statement, dict) or statement.get("_type") != STATEMENT_TYPE:
        raise StatementError("holds no in-toto Statement v1")
    if statement.get("predicateType") != PREDICATE_TYPE:
        raise StatementError("holds no test result")
    return statement


def _encoded(envelope: Envelope) -> bytes:
    return json.dumps(envelope.to_dict(), indent=2, sort_keys=True).encode() + b"\n"
