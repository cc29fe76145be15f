"""A finished run as plain lines for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.domain.checks import CHECK_IDS
from orchestrator.domain.outcome import Cause, Outcome, Result
from orchestrator.report.wording import one_line, quantity, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.runlog.documents import CheckDocument, SummaryDocument, VerdictDocument

MOST_WORDS: Final = 3  # a broken pipeline fails a dozen checks: the first ones lead to the rest
_NO_DEATHS: Final = (Cause.ASSERTION_FAILED, Cause.COMPLETED)
_KNOWN_WORDS: Final = frozenset({*CHECK_IDS, *Cause})


def summary_lines(summary: SummaryDocument, verdicts: Sequence[VerdictDocument]) -> list[str]:
    """Return one line per phone with its cause and failing checks below, then the outcome.

    Args:
        summary: From `remake`.
        verdicts: The `verdict.json` of its phones; a phone without one shows less.
    """
    explained = {verdict.udid: verdict for verdict in verdicts}
    on_hosts = any(phone.host for phone in summary.phones)
    rows = [
        [
            phone.alias,
            *([phone.host or ""] if on_hosts else []),
            phone.model,
            f"iOS {phone.os}",
            phone.outcome,
            phone.cause,
        ]
        for phone in summary.phones
    ]
    lines = []
    for phone, row in zip(summary.phones, _aligned(rows), strict=True):
        lines.append(row)
        verdict = explained.get(phone.udid)
        if verdict is not None and phone.outcome != Outcome.PASS:
            lines.append(f"    {_short(verdict.explanation)}")
        lines += [f"    {_check(check)}" for check in phone.checks if check.result == Result.FAIL]
    marks = ["virtual"] if summary.virtual else []
    if any(verdict.stand_in for verdict in verdicts):
        marks.append("stand-in app")
    mark = f" ({', '.join(marks)})" if marks else ""
    return [
        *lines,
        *_next_command(summary),
        f"{summary.outcome}{mark}, exit code {summary.exit_code}",
    ]


def _next_command(summary: SummaryDocument) -> list[str]:
    """Return the command that explains what went wrong, none where nothing did."""
    bad = [phone for phone in summary.phones if phone.outcome != Outcome.PASS]
    words = [phone.cause for phone in bad if phone.cause not in _NO_DEATHS]
    words += [c.id for phone in bad for c in phone.checks if c.result == Result.FAIL]
    known = [word for word in dict.fromkeys(words) if word in _KNOWN_WORDS]
    if bad and not known:
        known = [str(summary.exit_code)]
    if not known:
        return []
    return [f"what it means: fleet explain {' '.join(known[:MOST_WORDS])}"]


def _aligned(rows: list[list[str]]) -> list[str]:
    clean = [[_short(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*clean, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in clean
    ]


def _check(check: CheckDocument) -> str:
    limit = "" if check.limit is None else f" against {quantity(check.limit, check.unit)}"
    reason = f": {_short(check.reason)}" if check.reason else ""
    return f"{one_line(check.id)} fails, {quantity(check.value, check.unit)}{limit}{reason}"


def _short(text: str) -> str:
    return one_line(shortened(text))
