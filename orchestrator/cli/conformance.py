"""What a brief run of an app says about the checks it can support."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from orchestrator.domain.outcome import ExitCode, Result
from orchestrator.runlog.documents import PlanDocument, VerdictDocument
from orchestrator.runlog.files import read_document
from orchestrator.runlog.layout import RunPaths
from orchestrator.verdict.needs import missing_kinds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from orchestrator.runlog.documents import CheckDocument

SUPPORTED = "supported"
NOT_SENT = "not sent"  # records that the check needs did not come: the app may never send them
NOT_EXERCISED = "not exercised"  # the records are there, what the check waits for did not happen
NOT_HERE = "not here"  # no app could be held to it on this phone


class Support(msgspec.Struct, frozen=True, omit_defaults=True):
    """One check."""

    id: str
    support: str
    required: bool  # by the scenario that was run
    result: str
    reason: str | None = None
    not_sent: list[str] = []


class Conformance(msgspec.Struct, frozen=True):
    """`fleet conform --json`; the keys are relied on from outside."""

    app: str  # bundle id
    engine: str | None  # None: no telemetry came
    phone: str
    virtual: bool
    outcome: str
    explanation: str
    conforms: bool  # every check that the scenario requires is supported
    checks: list[Support]

    @property
    def exit_code(self) -> ExitCode:
        """0 where the app conforms, else 4: what failed is the soak's business."""
        return ExitCode.OK if self.conforms else ExitCode.INCONCLUSIVE

    def lines(self) -> Iterator[str]:
        """Yield what a person reads."""
        where = f"{self.phone}{' (virtual)' if self.virtual else ''}"
        yield f"{self.app} on {where}, engine {self.engine or 'unknown'}: {self.explanation}"
        for check in self.checks:
            star = "*" if check.required else " "
            remark = f"no {', '.join(check.not_sent)} records" if check.not_sent else check.reason
            yield f"{star} {check.id:<24} {check.support:<14} {check.result:<11} {remark or ''}"
        supported = sum(check.support == SUPPORTED for check in self.checks)
        verdict = "conforms" if self.conforms else "does not support all that are required (*)"
        yield f"{supported} of {len(self.checks)} checks supported; the app {verdict}"


class _Line(msgspec.Struct, frozen=True, gc=False):
    kind: str
    engine: str | None = None


def conformance_of(run: Path) -> Conformance:
    """Return what the first phone of a run, reported already, says of its app.

    Raises:
        FleetError: If the run cannot be read.
    """
    paths = RunPaths(run)
    plan = read_document(paths.plan, PlanDocument)
    phone = plan.phones[0]
    device = paths.device(phone.directory)
    verdict = read_document(device.verdict, VerdictDocument)
    sent, engine = _sent(device.telemetry)
    checks = [support_of(check, sent, plan.requires.checks) for check in verdict.checks]
    lacking = [check for check in checks if check.required and check.support != SUPPORTED]
    return Conformance(
        app=plan.app.bundle_id,
        engine=engine,
        phone=verdict.alias,
        virtual=verdict.virtual,
        outcome=verdict.outcome,
        explanation=verdict.explanation,
        conforms=bool(sent) and not lacking,
        checks=checks,
    )


def support_of(check: CheckDocument, sent: Collection[str], required: Collection[str]) -> Support:
    """Return whether an app can be held to a check: pure.

    Args:
        check: Its result.
        sent: Kinds of records that came.
        required: Ids of the checks that the scenario requires.
    """
    missing = missing_kinds(check.id, sent)
    if check.result in {Result.PASS, Result.FAIL}:
        support = SUPPORTED
    elif missing:
        support = NOT_SENT
    else:
        support = NOT_HERE if check.result == Result.SKIPPED else NOT_EXERCISED
    lacking = list(missing) if support == NOT_SENT else []
    return Support(check.id, support, check.id in required, check.result, check.reason, lacking)


def _sent(telemetry: Path) -> tuple[set[str], str | None]:
    """Return the kinds of records that came, and the engine that `hello` names."""
    decoder, kinds, engine = msgspec.json.Decoder(_Line), set[str](), None
    if not telemetry.exists():
        return kinds, engine
    with telemetry.open("rb") as lines:
        for line in lines:
            try:
                record = decoder.decode(line)
            except msgspec.DecodeError:
                continue  # torn or hostile: the run's own report tells of it
            kinds.add(record.kind)
            engine = record.engine or engine
    return kinds, engine
