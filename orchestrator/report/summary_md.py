"""`summary.md`: the short table that a CI job shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.domain.toolchain import SWIFT_PAGE
from orchestrator.report.wording import markdown, one_line, quantity

if TYPE_CHECKING:
    from orchestrator.report.result import PhoneResult, RunResult
    from orchestrator.runlog.documents import CheckDocument

# GitHub takes 1 MiB per step and drops a longer summary whole; GitLab's notes end at 1,000,000.
SUMMARY_LIMIT_BYTES: Final = 1_000_000
_NOTE_ROOM_BYTES: Final = 200
_PLACE_CHARACTERS: Final = 500


def summary_markdown(result: RunResult) -> str:
    """Return the run as GitHub-flavoured Markdown, cut at a whole line where CI would refuse it."""
    lines = [f"## {_shown(result.headline)}", ""]
    lines += [f"> **{mark}**" for mark in marks_of(result)]
    lines += ["", *_phones(result), ""]
    for phone in result.phones:
        lines += _failing(phone)
    lines += _skipped(result)
    return within_limit("\n".join(lines).rstrip() + "\n", SUMMARY_LIMIT_BYTES)


def _shown(text: str) -> str:
    """Return a text for one place of the page: no phone may fill it alone."""
    line = one_line(text)
    return markdown(line if len(line) <= _PLACE_CHARACTERS else line[:_PLACE_CHARACTERS] + "…")


def within_limit(text: str, limit_bytes: int) -> str:
    """Return a text of at most so many bytes of UTF-8, whole lines, with a note of what is cut."""
    if len(text.encode()) <= limit_bytes:
        return text
    kept, size_bytes = [], 0
    lines = text.splitlines(keepends=True)
    for line in lines:
        size_bytes += len(line.encode())
        if size_bytes > limit_bytes - _NOTE_ROOM_BYTES:
            break
        kept.append(line)
    left_out = len(lines) - len(kept)
    note = f"{left_out} more lines are left out: `summary.json` and the HTML report have them."
    return "".join(kept).rstrip() + f"\n\n> {note}\n"


def marks_of(result: RunResult) -> list[str]:
    """Return what a reader must know first: this was no iPhone, this was not the app."""
    marks = []
    if result.virtual:
        marks.append("VIRTUAL: no iPhone was involved")
    if result.stand_in:
        marks.append(f"STAND-IN APP: not the Swift app, see {SWIFT_PAGE}")
    return marks


def _phones(result: RunResult) -> list[str]:
    if not result.phones:
        return ["No phone was soaked."]
    rows = [
        "| Phone | Model | iOS | Outcome | Cause | Tokens | Trims | Evictions |",
        "|---|---|---|---|---|---:|---:|---:|",
    ]
    for verdict in (phone.verdict for phone in result.phones):
        texts = (verdict.alias, verdict.model, verdict.os, verdict.outcome, verdict.cause)
        counts = (verdict.tokens_total, verdict.trims, verdict.evictions)
        rows.append("| " + " | ".join([*map(_shown, texts), *map(str, counts)]) + " |")
    return rows


def _failing(phone: PhoneResult) -> list[str]:
    verdict = phone.verdict
    if verdict.outcome == "PASS":
        return []
    lines = [f"### {_shown(verdict.alias)}: {_shown(verdict.explanation)}", ""]
    if phone.failing:
        lines += ["| Check | Result | Value | Limit | Record | Why |", "|---|---|---|---|---|---|"]
        lines += [_check(check) for check in phone.failing]
        lines.append("")
    return lines


def _check(check: CheckDocument) -> str:
    record = "—" if check.seq is None else f"{check.launch or '?'} #{check.seq}"
    cells = (
        check.id,
        check.result,
        quantity(check.value, check.unit),
        quantity(check.limit, check.unit),
        record,
        check.reason or "—",
    )
    return "| " + " | ".join(map(_shown, cells)) + " |"


def _skipped(result: RunResult) -> list[str]:
    if result.plan is None or not result.plan.skipped:
        return []
    lines = ["### Not soaked", ""]
    lines += [
        f"* {_shown(phone.alias)} ({_shown(phone.model)}, iOS {_shown(phone.os)}): "
        f"{_shown(phone.reason)}"
        for phone in result.plan.skipped
    ]
    return lines
