"""GitHub's annotations: one workflow command a line, at most ten of a kind, escaped.

GitHub shows ten errors, ten warnings and ten notices of a step and drops the rest silently, so
the tenth says how many there are more. Source: docs.github.com, "Workflow commands for GitHub
Actions"; the escapes are those of actions/toolkit, packages/core/src/command.ts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.domain.outcome import Outcome, Result
from orchestrator.report.wording import one_line, quantity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from orchestrator.runlog.documents import CheckDocument, VerdictDocument

PER_KIND: Final = 10
_TITLE_CHARACTERS: Final = 200
_MESSAGE_CHARACTERS: Final = 1000  # GitHub cuts at 4096 bytes; nobody reads that far


@dataclass(frozen=True, slots=True)
class Annotation:
    """One remark beside a CI job."""

    kind: str  # "error", "warning", "notice"
    title: str
    message: str


def annotation_lines(verdicts: Sequence[VerdictDocument], required: Collection[str]) -> list[str]:
    """Return the workflow commands of a run: errors for the product, warnings for the lab.

    Args:
        verdicts: One per phone, in the run's order.
        required: Check ids that the scenario demands.
    """
    kinds: dict[str, list[Annotation]] = defaultdict(list)
    for verdict in verdicts:
        for annotation in _annotations(verdict, required):
            kinds[annotation.kind].append(annotation)
    return [_command(each) for kind in kinds.values() for each in _first_ten(kind)]


def _annotations(verdict: VerdictDocument, required: Collection[str]) -> Iterator[Annotation]:
    who = f"{verdict.alias} ({verdict.model}, iOS {verdict.os})"
    if verdict.outcome == Outcome.PASS:
        return
    kind = "error" if verdict.outcome == Outcome.FAIL else "warning"
    yield Annotation(kind, f"{verdict.outcome} {who}: {verdict.cause}", verdict.explanation)
    for check in verdict.checks:
        if check.result == Result.FAIL:
            yield Annotation("error", f"{check.id} on {who}", _why(check))
        elif check.result == Result.UNMEASURED and check.id in required:
            yield Annotation("warning", f"{check.id} on {who}: no data", check.reason or "no data")


def _why(check: CheckDocument) -> str:
    limit = "" if check.limit is None else f", limit {quantity(check.limit, check.unit)}"
    value = "" if check.value is None else f"{quantity(check.value, check.unit)}{limit}: "
    return f"{value}{check.reason or 'failed'}"


def _first_ten(annotations: Sequence[Annotation]) -> list[Annotation]:
    if len(annotations) <= PER_KIND:
        return list(annotations)
    kind, more = annotations[0].kind, len(annotations) - PER_KIND + 1
    rest = Annotation(kind, f"{more} more of this kind", "See summary.md and the HTML report.")
    return [*annotations[: PER_KIND - 1], rest]


def _command(annotation: Annotation) -> str:
    title = (
        _escaped(one_line(annotation.title)[:_TITLE_CHARACTERS])
        .replace(":", "%3A")
        .replace(",", "%2C")
    )
    message = _escaped(one_line(annotation.message)[:_MESSAGE_CHARACTERS])
    return f"::{annotation.kind} title={title}::{message}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
